// The modules of every page of the portal.
import "./account_menu.js";
import "./announcements.js";
