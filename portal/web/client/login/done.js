// Tells the page that asked for this login, which is in another tab, and closes this one if it may.
new BroadcastChannel("slipway-login").postMessage("in");
close();
