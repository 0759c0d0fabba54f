# The entry points. PORT=9090 make up: another port; SLURM=26.05 make up: another Slurm version;
# HTTPS=1 make up: with https; APPS=ports or APPS=subdomains: the kind of the apps' origins.
# SESSION_HOME=persistent make up: sessions in users' own home directories.
.PHONY: help up hub down logs shell image images test test-images test-hosts test-cgroup2 attack check clean \
    assets docs packages test-packages

help:
	@echo "make up     install, build and start everything; prints the address"
	@echo "make hub    the same with a JupyterHub in front of it"
	@echo "make down   stop it (data stays)"
	@echo "make logs   follow the logs of all services"
	@echo "make shell  a shell on the login node as alice"
	@echo "make image IMAGE=python/3.11  build one image for the cluster, and run its test"
	@echo "make test   all tests, on separate clusters"
	@echo "make images which images are built; ALL=1 builds all that need no registry"
	@echo "make test-images  every built image: its own test, and in sessions on a separate cluster"
	@echo "make test-hosts two portal hosts on a PostgreSQL, on a separate cluster"
	@echo "make test-cgroup2 in a virtual machine whose kernel has cgroup v2 only; SLURM=26.05: one version"
	@echo "make attack only the attacks, on separate clusters"
	@echo "make check  only the static checks: ruff, mypy, import rules, calls by path, shellcheck"
	@echo "make docs   the documentation as a site, in build/site"
	@echo "make assets the browser libraries, for work on the pages outside the cluster"
	@echo "make packages  a release in dist/: wheel, .deb, .rpm, container image, files for the nodes, SHA256SUMS"
	@echo "make test-packages  what make packages made, in fresh containers"
	@echo "make clean  stop it and delete its data"

up:
	@cluster/up.sh

hub:
	@HUB=$${HUB:-6.1} cluster/up.sh

down:
	@cluster/down.sh

logs:
	@cluster/ctl.sh logs -f

shell:
	@cluster/ctl.sh exec -t --user alice login -- bash -l

image:
	@cluster/image.sh "$(IMAGE)"

test:
	@bash tests/run.sh

images:
	@cluster/images.sh $(if $(ALL),build,show)

test-images:
	@bash tests/run.sh images

test-hosts:
	@bash tests/run.sh hosts

test-cgroup2:
	@bash tests/run.sh cgroup2

attack:
	@bash tests/run.sh attack

check:
	@bash tests/run.sh check

docs:
	@bash tests/run.sh docs

assets:
	@bash portal/web/client/build.sh

packages:
	@bash deploy/packages/build.sh

test-packages:
	@bash tests/packages/run.sh

clean:
	@cluster/down.sh --data
