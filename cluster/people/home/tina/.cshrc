# For csh and tcsh.
set prompt = "%m %~ %# "
set history = 1000
alias rm 'rm -i'
alias ls 'ls -F'
setenv EDITOR nano
setenv FROM_CSHRC yes
set path = (~/bin $path)
echo "Welcome, $user. The file system is checked on Tuesday."
