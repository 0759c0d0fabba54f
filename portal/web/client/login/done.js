// Notifies the page that opened this login from another tab, and closes this one if possible.
new BroadcastChannel("slipway-login").postMessage("in");
close();
