// Notifications of the browser.
import "../common/page.js";
import "../account/notifications.js";
