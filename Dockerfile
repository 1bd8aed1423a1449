# syntax=docker/dockerfile:1
# Two stages: the first builds and compiles, the last has what answering needs and nothing else.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/dicoflex \
    && /opt/dicoflex/bin/pip install --no-cache-dir --compile ".[serve,sign]" \
    && /opt/dicoflex/bin/pip uninstall --yes pip
# All kernels, for any x86 processor of the last ten years; the same three variables are set where they are used.
ENV NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES="" DICOFLEX_COMPILED=/opt/dicoflex/compiled
RUN /opt/dicoflex/bin/dicoflex warm

FROM python:3.12-slim
LABEL org.opencontainers.image.title="dicoflex" \
      org.opencontainers.image.description="Counterfactual explanations over HTTP" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /opt/dicoflex /opt/dicoflex
ENV PATH=/opt/dicoflex/bin:$PATH \
    NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES="" DICOFLEX_COMPILED=/opt/dicoflex/compiled \
    NUMBA_NUM_THREADS=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    DICOFLEX_HOST=0.0.0.0 DICOFLEX_PORT=8000
USER 10001:10001
EXPOSE 8000
VOLUME ["/models"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
ENTRYPOINT ["dicoflex", "serve", "/models"]
