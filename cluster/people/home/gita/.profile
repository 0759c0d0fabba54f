# What I make belongs to the group as well.
umask 007
export GROUP_FOLDER=/home/group/crystal
greet() { echo "hello, $1"; }
export -f greet
