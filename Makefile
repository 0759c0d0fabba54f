# What people type. PORT=9090 make up takes another port, SLURM=26.05 make up another Slurm,
# HTTPS=1 make up speaks https, APPS=ports or APPS=subdomains says how apps get their origins.
.PHONY: help up down logs shell test attack check clean assets

help:
	@echo "make up     install, build and start everything; prints the address"
	@echo "make down   stop it (data stays)"
	@echo "make logs   follow what all services say"
	@echo "make shell  a shell on the login node as alice"
	@echo "make test   all tests, on clusters of their own"
	@echo "make attack the attacks alone, on clusters of their own"
	@echo "make check  the static checks alone: ruff, mypy, import rules, shellcheck"
	@echo "make assets the browser's libraries, for work on the pages outside the cluster"
	@echo "make clean  stop it and delete its data"

up:
	@cluster/up.sh

down:
	@cluster/down.sh

logs:
	@cluster/ctl.sh logs -f

shell:
	@cluster/ctl.sh exec -t --user alice login -- bash -l

test:
	@bash tests/run.sh

attack:
	@bash tests/run.sh attack

check:
	@bash tests/run.sh check

assets:
	@bash portal/web/assets/build.sh

clean:
	@cluster/down.sh --data
