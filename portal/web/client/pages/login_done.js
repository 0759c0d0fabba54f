// You are logged in: closes the tab of a log-in at the OpenID provider.
import "../common/page.js";
import "../login/done.js";
