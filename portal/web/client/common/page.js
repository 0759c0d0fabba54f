// What every page of the portal has.
import "./account_menu.js";
import "./announcements.js";
