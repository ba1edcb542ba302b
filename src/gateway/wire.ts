// The exchange between two gateways before the bytes of a connection: one line of JSON that names the target, and one
// line back. The protocol is chosen by ALPN, so later protocols can be distinguished.
import { parseJsonText } from '#apimachinery/json/index.ts'

export const gatewayProtocol = 'kcp-gateway/1'
/** Maximum bytes of the line that names a target, its end included. */
export const maxLineBytes = 1024

/** A port of a Service in the member of the gateway that is asked. */
export interface Target {
  /** The usual name of the namespace, ID-NAME. */
  readonly namespace: string
  readonly service: string
  /** The name of the port; empty where the Service has one port without a name. */
  readonly port: string
}

/** Why a connection is refused. Peers read these reasons, so they reveal nothing about other logical clusters. */
export const refusals = ['malformed', 'forbidden', 'busy', 'unreachable', 'stopping'] as const
export type Refusal = (typeof refusals)[number]

/** The line that asks for a target. */
export function requestLine({ namespace, service, port }: Target): string {
  return `${JSON.stringify({ namespace, service, port })}\n`
}

/** The target in a line without its end; undefined if it is malformed. */
export function tryParseRequest(line: string): Target | undefined {
  let value: unknown
  try {
    value = parseJsonText(line)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { namespace, service, port } = value as Record<string, unknown>
  if (typeof namespace !== 'string' || typeof service !== 'string' || typeof port !== 'string') return undefined
  return namespace === '' || service === '' ? undefined : { namespace, service, port }
}

/** The response line. Without a refusal, it says that the connection is open. */
export function answerLine(refusal?: Refusal): string {
  return refusal === undefined ? 'ok\n' : `no ${refusal}\n`
}

export type Answer = { readonly ok: true } | { readonly ok: false; readonly reason: Refusal }

/** The response in a line without its end; undefined if it is malformed. */
export function tryParseAnswer(line: string): Answer | undefined {
  if (line === 'ok') return { ok: true }
  const reason = refusals.find((one) => line === `no ${one}`)
  return reason === undefined ? undefined : { ok: false, reason }
}
