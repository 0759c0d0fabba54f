// Announcements and maintenance.
import "../common/page.js";
import "../common/times.js";
import "../admin/admin.js";
import "../admin/local_times.js";
