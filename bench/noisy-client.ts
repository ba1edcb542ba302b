// The process of a noisy tenant: sends as many requests as its connections carry, without a pause, also after a
// refusal.
import { Pool } from 'undici'
import { connectionOf } from './connection.ts'
import { noisyObjects, objectName } from './across-protocol.ts'
import type { LoadRequest } from './load.ts'
import type { FromNoisyClient, Noise, Noised, ToNoisyClient } from './neighbour-protocol.ts'
import { eventText } from './watch-protocol.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
/** Created objects go elsewhere than the listed and watched ones, or one kind of load would increase the others. */
const createPath = '/api/v1/namespaces/kube-public/configmaps'
type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

let created = 0
const unique = `${process.pid}-${Date.now()}`

/** Builds everything but the name once, so that the client spends its time sending. */
function namedBodies(data: Record<string, string>): () => string {
  const [before = '', after = ''] = JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: '<name>' },
    data,
  }).split('<name>')
  return () => `${before}noise-${unique}-${created++}${after}`
}

const small = namedBodies({ text: 'x'.repeat(512) })
/** About 1 MB with 60,000 small members. */
const large = namedBodies(
  Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`k${String(i).padStart(8, '0')}`, ''])),
)

function update(): readonly [string, string, string, string] {
  const patch = { data: { at: eventText(created) } }
  const path = `${configMaps}/${objectName(created++ % noisyObjects)}`
  return ['PATCH', path, JSON.stringify(patch), 'application/merge-patch+json']
}

const works: Record<Noise, () => LoadRequest> = {
  updates: update,
  creates: () => ['POST', createPath, small()],
  lists: () => ['GET', configMaps],
  bodies: () => ['POST', createPath, large()],
  watches: () => ['GET', `${configMaps}?watch=1&timeoutSeconds=1`],
}

const noised: Mutable<Noised> = { answered: 0, refused: 0, withoutRetryAfter: 0, failed: 0, failure: '' }
const life = new AbortController()
let clients: Promise<unknown> = Promise.resolve()

const isStopped = (): boolean => life.signal.aborted

async function flood(pool: Pool, base: string, work: () => LoadRequest): Promise<void> {
  while (!isStopped()) {
    const [method, path, body, type = 'application/json'] = work()
    try {
      const response = await pool.request({
        method,
        path: base + path,
        headers: body === undefined ? {} : { 'content-type': type },
        ...(body === undefined ? {} : { body }),
      })
      for await (const _ of response.body) if (isStopped()) break
      if (response.statusCode < 300) noised.answered++
      else if (response.statusCode === 429) {
        noised.refused++
        if (response.headers['retry-after'] === undefined) noised.withoutRetryAfter++
      } else {
        noised.failed++
        noised.failure = `${method} ${path}: ${response.statusCode}`
      }
    } catch (error) {
      if (isStopped()) return
      noised.failed++
      noised.failure = String(error)
    }
  }
}

const response = (message: FromNoisyClient): void => void process.send?.(message)

process.on('message', (message: ToNoisyClient) => {
  if (message === 'stop') {
    life.abort()
    // Pending requests are not awaited: the process ends next.
    const enough = new Promise((resolve) => setTimeout(resolve, 2000))
    void Promise.race([clients, enough]).then(() => response({ noised }))
    return
  }
  const { host, port, base, ca, cert, key } = connectionOf(message.kubeconfig)
  const pool = new Pool(`https://${host}:${port}`, {
    connections: message.connections,
    allowH2: false,
    connect: { ca, cert, key },
  })
  clients = Promise.all(Array.from({ length: message.connections }, () => flood(pool, base, works[message.start])))
  response({ started: true })
})
