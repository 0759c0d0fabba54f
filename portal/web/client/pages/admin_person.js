// One user, for administrators.
import "../common/page.js";
import "../common/times.js";
import "../admin/admin.js";
