// Requests to the direct listener of an installation as its admin, below /clusters/NAME or /clusters/*.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { fromStatus, isStatusError, type Status } from '#apimachinery/status/index.ts'
import { createClient, linesOf, type KubeClient, type Transport } from '#client/index.ts'

/** The name that stands for all logical clusters in paths. */
export const allClusters = '*'

export interface Direct {
  /** The API of one logical cluster, or with `*` that of all. */
  readonly client: (cluster: string) => KubeClient
  readonly transport: Transport
  readonly signal: AbortSignal
}

export function directOf(transport: Transport, signal: AbortSignal): Direct {
  return { client: (cluster) => createClient(transport, { basePath: basePath(cluster) }), transport, signal }
}

/** Path of a logical cluster, or of all. */
export function basePath(cluster: string): string {
  return `/clusters/${cluster}`
}

const maxAnswerBytes = 1 << 20

/** A PATCH with its warnings. Rejects with the server's StatusError. */
export async function patchWithWarnings(
  { transport, signal }: Direct,
  path: string,
  patch: unknown,
): Promise<{ readonly warnings: readonly string[] }> {
  const headers = { 'content-type': 'application/merge-patch+json', accept: 'application/json' }
  const response = await transport.request({ method: 'PATCH', path, headers, body: JSON.stringify(patch), signal })
  const parts: Uint8Array[] = []
  for await (const part of response.body) parts.push(part)
  const text = Buffer.concat(parts).toString('utf8')
  if (response.status > 299) throw fromStatus(parseJsonText(text) as unknown as Status)
  return { warnings: warningsOf(response.headers['warning'] ?? '') }
}

/** The texts of a Warning header: `299 - "text", 299 - "text"`. */
export function warningsOf(header: string): string[] {
  return [...header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replace(/\\(.)/g, '$1'))
}

/** The events of a watch in any representation. Rejects with StatusError if the server refuses or ends with an error. */
export async function* watchLines(
  { transport, signal }: Direct,
  path: string,
  accept: string,
): AsyncGenerator<{ readonly type: string; readonly object: unknown }> {
  const response = await transport.request({ method: 'GET', path, headers: { accept }, signal })
  for await (const line of linesOf(response.body, { maxBytes: 16 * maxAnswerBytes })) {
    const event = parseJsonText(line) as { type?: string; object?: unknown; kind?: string }
    if (event.kind === 'Status') throw fromStatus(event as unknown as Status)
    if (event.type === 'ERROR') throw fromStatus(event.object as Status)
    if (event.type !== undefined) yield { type: event.type, object: event.object }
  }
}

/** Whether a watch must begin with a list again. */
export function isExpired(error: unknown): boolean {
  return isStatusError(error, 'Expired') || isStatusError(error, 'Gone')
}

/** Runs `work` on all items, some at a time, and keeps their order. */
export async function each<T, R>(items: readonly T[], atATime: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index] as T)
  }
  await Promise.all(Array.from({ length: Math.min(atATime, items.length) }, worker))
  return results
}
