// `kcp placement explain` and `kcp drain --dry-run` in the browser: the operator's own functions over what the session
// may read. Loaded when a user asks.
import { explainWorkload, type WorkloadExplanation } from '#operator/placement/explain-workload.ts'
import { PlacementInputs } from '#operator/placement/placement-inputs.ts'
import { previewDrain, type DrainPreview } from '#operator/placement/preview-drain.ts'
import {
  createClient,
  sharedInformers,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from '#client/index.ts'
import { workloadKinds } from '#crds/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { urlOf } from '#console/kube/request.ts'

/** What would move where if the member were drained. Writes nothing. */
export function drainPreview(home: string, member: string, signal: AbortSignal): Promise<DrainPreview[]> {
  return withInputs(home, signal, (inputs) => previewDrain(inputs, member))
}

export interface WorkloadRef {
  readonly kind: string
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** Every filter and score of every member for a workload; undefined if it is not a workload that kcp places. */
export function explanationOf(
  home: string,
  { kind, ...ref }: WorkloadRef,
  signal: AbortSignal,
): Promise<WorkloadExplanation | undefined> {
  const row = workloadKinds.find((one) => one.kind === kind)
  if (row === undefined) return Promise.resolve(undefined)
  return withInputs(home, signal, (inputs) => explainWorkload(inputs, { kind: row, ...ref }))
}

/** Reads all inputs of placement once, and ends the watches afterwards. */
async function withInputs<T>(home: string, signal: AbortSignal, use: (inputs: PlacementInputs) => T): Promise<T> {
  const life = new AbortController()
  const end = (): void => life.abort(new DOMException('the page has what it needs', 'AbortError'))
  signal.addEventListener('abort', end)
  try {
    const options = { log: silentLogger, signal: life.signal }
    const informers = sharedInformers(createClient(fetchTransport(home)), options)
    const everywhere = createClient(fetchTransport('k8s/clusters/*'))
    const tenantInformers = sharedInformers(everywhere, { ...options, allClusters: true })
    const inputs = new PlacementInputs({ informers, tenantInformers })
    await inputs.synced(life.signal)
    const result = use(inputs)
    inputs[Symbol.dispose]()
    return result
  } finally {
    signal.removeEventListener('abort', end)
    end()
  }
}

function fetchTransport(base: string): Transport {
  return {
    request: (request) => send(base, request),
    upgrade: () => Promise.reject(new Error('not in a browser')),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

async function send(
  base: string,
  { method, path, headers = {}, signal }: TransportRequest,
): Promise<TransportResponse> {
  const response = await fetch(urlOf(`${base}${path}`), {
    method,
    headers: { ...headers, 'x-kcp-console': '1' },
    credentials: 'same-origin',
    cache: 'no-store',
    signal,
  })
  return { status: response.status, headers: Object.fromEntries(response.headers), body: bytesOf(response) }
}

async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  if (reader === undefined) return
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
