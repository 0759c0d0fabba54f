// The account: tokens, logins, registries.
import "../common/page.js";
import "../common/times.js";
import "../account/account.js";
