// The inputs of the operator's decisions, read once by a command that only asks.
import { childSignal } from '#async/index.ts'
import { createClient, httpTransport, sharedInformers } from '#client/index.ts'
import { PlacementInputs } from '#operator/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { Installation } from './installation.ts'

export interface OpenPlacement extends AsyncDisposable {
  readonly inputs: PlacementInputs
}

/** Reads what placement knows of all logical clusters. Rejects with StatusError if the API server does not answer. */
export async function openPlacement(
  { clusters, directUrl, pki }: Installation,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<OpenPlacement> {
  await using stack = new AsyncDisposableStack()
  const { certificate: cert, key } = await pki.issueClientCertificate({
    commonName: 'kcp:operator',
    organizations: ['kcp:system'],
    realm: 'installation',
    days: 1,
  })
  const endpoint = { server: directUrl, ca: pki.servingCa, cert, key }
  const transport = stack.use(httpTransport({ endpoint: () => Promise.resolve(endpoint) }))
  const life = stack.use(childSignal(signal))
  stack.defer(() => life.abort(new DOMException('the command has ended', 'AbortError')))
  const informers = sharedInformers(clusters, { log, signal: life.signal })
  const virtual = createClient(transport, { basePath: '/clusters/*' })
  const tenantInformers = sharedInformers(virtual, { allClusters: true, log, signal: life.signal })
  const inputs = stack.use(new PlacementInputs({ informers, tenantInformers }))
  await inputs.synced(signal)
  const kept = stack.move()
  return { inputs, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
