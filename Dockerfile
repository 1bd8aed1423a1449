# syntax=docker/dockerfile:1
# Two stages: the first, which has a compiler, builds, the last has what answering needs and nothing else.
FROM python:3.12 AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE CMakeLists.txt ./
COPY core ./core
COPY src ./src
RUN python -m venv /opt/dicoflex \
    && /opt/dicoflex/bin/pip install --no-cache-dir --compile ".[serve,sign]" \
    && /opt/dicoflex/bin/pip uninstall --yes pip

FROM python:3.12-slim
LABEL org.opencontainers.image.title="dicoflex" \
      org.opencontainers.image.description="Counterfactual explanations over HTTP" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /opt/dicoflex /opt/dicoflex
ENV PATH=/opt/dicoflex/bin:$PATH \
    DICOFLEX_THREADS=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    DICOFLEX_HOST=0.0.0.0 DICOFLEX_PORT=8000
USER 10001:10001
EXPOSE 8000
VOLUME ["/models"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
ENTRYPOINT ["dicoflex", "serve", "/models"]
