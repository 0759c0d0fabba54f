// The pages without a script of their own.
import "../common/page.js";
