export FROM_ZSHENV=yes
setopt nomatch
