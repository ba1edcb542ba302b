// Plays a topic on one server: its rows in sequence, with watches and background reads beside them.
import { at } from '#test/integration/json.ts'
import { Normaliser, type Comparable } from './normalise.ts'
import type { Row, Topic } from './row.ts'
import type { ApiResponse, Sent, Server } from './wire.ts'

const untilMs = 30_000
/** Timeout of an event, milliseconds; the events received until then are compared. */
const eventMs = 15_000

export interface Player {
  readonly server: Server
  /** The path under which the server serves the cluster; empty for a server of one cluster. */
  readonly base: string
}

interface Played {
  readonly answer: ApiResponse
  readonly events?: readonly string[]
}

/** The answers to all rows, in their order. */
export async function play({ rows, name }: Topic, { server, base }: Player): Promise<Comparable[]> {
  const saved: Record<string, unknown> = {}
  const pending: Promise<Played>[] = []
  for (const row of rows) {
    const sent = expand(row, saved, { namespace: name, base })
    if (row.events !== undefined) pending.push((await openWatch(server, sent, row.events)).played)
    else if (row.background === true) pending.push(server.send(sent).then((answer) => ({ answer })))
    else {
      const answer = await ask(server, sent, row.until)
      pending.push(Promise.resolve({ answer }))
      if (row.save !== undefined) saved[row.save] = tryJson(answer.body)
      if (row.saveHeaders !== undefined)
        saved[row.saveHeaders] = Object.fromEntries([...answer.headers].map(([header, values]) => [header, values[0]]))
    }
  }
  const played = await Promise.all(pending)
  const normaliser = new Normaliser(base)
  return played.map(({ answer, events }, index) => {
    if (rows[index]?.statusOnly === true) return { status: answer.status, headers: {}, body: '' }
    const comparable = normaliser.answer(answer, events)
    return rows[index]?.headersOnly === true ? { ...comparable, body: '' } : comparable
  })
}

async function ask(server: Server, sent: Sent, until: number | undefined): Promise<ApiResponse> {
  const deadline = Date.now() + untilMs
  for (;;) {
    const response = await server.send(sent)
    if (until === undefined || response.status === until || Date.now() > deadline) return response
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Resolves when the watch is open; `played` resolves with its events. */
async function openWatch(server: Server, sent: Sent, count: number): Promise<{ played: Promise<Played> }> {
  const watch = await server.watch(sent)
  const read = async (): Promise<Played> => {
    const events: string[] = []
    const late = Promise.withResolvers<'late'>()
    const timer = setTimeout(() => late.resolve('late'), eventMs)
    try {
      while (events.length < count && watch.answer.status === 200) {
        const event = await Promise.race([watch.next(), late.promise])
        events.push(event === undefined ? 'END' : event)
        if (event === undefined || event === 'late') break
      }
    } finally {
      clearTimeout(timer)
      watch.close()
    }
    return { answer: watch.answer, events }
  }
  return { played: read() }
}

function expand(
  { method, path, headers = {}, body }: Row,
  saved: Record<string, unknown>,
  { namespace, base }: { namespace: string; base: string },
): Sent {
  const fill = (text: string): string =>
    text.replaceAll('{ns}', namespace).replace(/<<([^>]+)>>/g, (_, place: string) => {
      const value = at(saved, place)
      if (typeof value !== 'string' && typeof value !== 'number')
        throw new Error(`nothing was saved at ${place} for ${method} ${path}`)
      return String(value)
    })
  return {
    method,
    // A path that the server returned contains its base path.
    path: base !== '' && path.startsWith('<<') ? fill(path).replace(base, '') : fill(path),
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? fill(value) : value.map(fill)]),
    ),
    body: bodyBytes(body, fill),
  }
}

function bodyBytes(body: Row['body'], fill: (text: string) => string): Uint8Array | undefined {
  if (body === undefined || body instanceof Uint8Array) return body
  return Buffer.from(fill(typeof body === 'string' ? body : JSON.stringify(body)))
}

function tryJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown
  } catch {
    return undefined
  }
}
