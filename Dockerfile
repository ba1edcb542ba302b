# The image where a container engine is at hand; `make image` builds the same program without one.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages packages
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build && npm prune --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOME=/tmp
WORKDIR /tmp
COPY --from=build /app/package.json /app/LICENSE /app/
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/packages /app/packages
COPY --from=build /app/dist/src /app/dist/src
COPY --from=build /app/dist/console /app/dist/console
COPY --from=build /app/dist/openapi /app/dist/openapi
USER 65532:65532
ENTRYPOINT ["node", "--max-http-header-size=262144", "--disable-warning=ExperimentalWarning", "/app/dist/src/cli/main.js"]
