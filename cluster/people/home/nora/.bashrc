echo "Welcome, $USER."
