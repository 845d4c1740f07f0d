# The server in one image: listens on 7860 (Spaces) and 8000 (OpenEnv's container providers), needs no network, writes
# to /tmp only, runs as an ordinary user.
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/venv
COPY requirements.lock /src/
RUN /opt/venv/bin/pip install --require-hashes -r /src/requirements.lock
COPY . /src
RUN /opt/venv/bin/pip install --no-deps --no-index --no-build-isolation /src

FROM python:3.11-slim
LABEL org.opencontainers.image.title="autotest-env" \
      org.opencontainers.image.description="OpenEnv environment: write tests that catch bugs" \
      org.opencontainers.image.licenses="MIT"
# The grader's system call filter needs libseccomp; most Debian bases have it.
RUN ldconfig -p | grep -q 'libseccomp\.so\.2' \
    || (apt-get update && apt-get install -y --no-install-recommends libseccomp2 && rm -rf /var/lib/apt/lists/*)
RUN useradd --uid 1000 --no-create-home --home-dir /tmp autotest
COPY --from=build /opt/venv /opt/venv
COPY README.md openenv.yaml /app/
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    XDG_CACHE_HOME=/tmp/.cache \
    GRADIO_TEMP_DIR=/tmp/gradio \
    GRADIO_ANALYTICS_ENABLED=False \
    HF_HUB_OFFLINE=1 \
    ENV_README_PATH=/app/README.md \
    ENABLE_WEB_INTERFACE=true \
    AUTOTEST_HOST=0.0.0.0 \
    AUTOTEST_PORTS=7860,8000
WORKDIR /app
USER 1000
EXPOSE 7860 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['AUTOTEST_PORTS'].split(',')[0] + '/health', timeout=4)"]
CMD ["server"]
