// A job that Slurm is taking.
import "../common/page.js";
import "../jobs/submitted.js";
