# An image of one broker. Build it in a checkout: docker build -t ottla .
#
# Clients on the host reach it at localhost:9092 (docker run -p 9092:9092), and those in its network at kafka:19092, if the container
# is called kafka. OTTLA_ADVERTISED_LISTENERS changes what clients are told. Its data are in the volume /var/lib/ottla.

FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/ottla
# Every dependency has a wheel for this image, except one that is pure Python: nothing is compiled.
RUN /opt/ottla/bin/pip install --no-cache-dir --only-binary :all: --no-binary pure-sasl '.[console,metrics]'

FROM python:3.13-slim
COPY --from=build /opt/ottla /opt/ottla
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ottla && install -d -o ottla -g ottla /var/lib/ottla
ENV PATH=/opt/ottla/bin:$PATH
ENV OTTLA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:19092,HOST://localhost:9092
USER ottla
WORKDIR /var/lib/ottla
VOLUME /var/lib/ottla
EXPOSE 9092 19092 9464 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s CMD ["python", "-c", "import urllib.request as request; request.urlopen('http://127.0.0.1:9464/readyz', timeout=2)"]
CMD ["sh", "-c", "exec ottla serve --data-dir /var/lib/ottla --metrics 0.0.0.0:9464 --override listeners=PLAINTEXT://0.0.0.0:19092,HOST://0.0.0.0:9092 --override advertised.listeners=$OTTLA_ADVERTISED_LISTENERS --override listener.security.protocol.map=PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT"]
