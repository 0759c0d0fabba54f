. ~/.profile
