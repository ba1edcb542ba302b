// Metrics of the gateway. No label names a tenant.
import type { Metrics } from '#telemetry/index.ts'

/** `outgoing`: from pods of this member to Services of others. `incoming`: from other members. */
export type Direction = 'outgoing' | 'incoming'

export interface GatewayMetrics {
  opened(direction: Direction): void
  closed(direction: Direction): void
  refused(direction: Direction, reason: string): void
  /** Counts the bytes from the client of a connection, and to it. */
  passed(direction: Direction, fromClient: number, toClient: number): void
  /** Call this before each scrape: it adds the bytes to their counter, which is not done for each small chunk. */
  flush(): void
}

export function createGatewayMetrics(metrics: Metrics): GatewayMetrics {
  const open = metrics.gauge({
    name: 'kcp_gateway_connections',
    help: 'Connections that are open.',
    labels: ['direction'],
  })
  const total = metrics.counter({
    name: 'kcp_gateway_connections_total',
    help: 'Connections that were joined with a Service.',
    labels: ['direction'],
  })
  const refusals = metrics.counter({
    name: 'kcp_gateway_refusals_total',
    help: 'Connections that were refused or could not be joined with a Service.',
    labels: ['direction', 'reason'],
  })
  const bytes = metrics.counter({
    name: 'kcp_gateway_bytes_total',
    help: 'Bytes of connections, by the end that sent them.',
    labels: ['direction', 'from'],
  })
  const counts = { outgoing: 0, incoming: 0 }
  const waiting = { outgoing: { client: 0, service: 0 }, incoming: { client: 0, service: 0 } }
  for (const direction of ['outgoing', 'incoming'] as const) open.set(0, { direction })
  return {
    opened(direction) {
      total.inc({ direction })
      open.set(++counts[direction], { direction })
    },
    closed: (direction) => open.set(--counts[direction], { direction }),
    refused: (direction, reason) => refusals.inc({ direction, reason }),
    passed(direction, fromClient, toClient) {
      waiting[direction].client += fromClient
      waiting[direction].service += toClient
    },
    flush() {
      for (const direction of ['outgoing', 'incoming'] as const) {
        for (const from of ['client', 'service'] as const) {
          bytes.inc({ direction, from }, waiting[direction][from])
          waiting[direction][from] = 0
        }
      }
    },
  }
}
