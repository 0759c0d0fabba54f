// The waiting page of an app.
import "../gate/gate.js";
