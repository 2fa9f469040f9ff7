# The one image: controller, agent and tools are commands of `gpushare`.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY operator operator
COPY templates templates
COPY crds crds
COPY examples examples
RUN python -m venv /opt/gpushare \
 && /opt/gpushare/bin/pip install --no-cache-dir -c constraints.txt . \
 && /opt/gpushare/bin/python -m compileall -q /opt/gpushare/lib

FROM python:3.11-slim
COPY --from=build /opt/gpushare /opt/gpushare
# What the container toolkit of the node is told, as in NVIDIA's image: show every GPU, with the management library only.
ENV PATH=/opt/gpushare/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    NVIDIA_DISABLE_REQUIRE=true
# Root is the agent's need (the kubelet's socket directory); the controller's pod sets an unprivileged user.
USER 0:0
ENTRYPOINT ["gpushare"]
