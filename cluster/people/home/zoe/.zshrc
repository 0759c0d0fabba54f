PROMPT='%m %~ %# '
setopt extended_glob share_history
autoload -Uz compinit && compinit
alias rm='rm -i'
