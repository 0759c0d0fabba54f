set --export EDITOR nano
set --export FROM_FISH yes
fish_add_path --path ~/bin
echo "Welcome, $USER. The file system is checked on Tuesday."
