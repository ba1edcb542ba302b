// Signs approved CertificateSigningRequests of the signer kubernetes.io/kube-apiserver-client. The certificate is valid
// in the logical cluster of the request alone. Requests of other signers are left to controllers of the tenant.
import { base64, type KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { timestamp, systemClock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import { type ControllerContext, type SignClientRequest, reconcileChanged } from './framework.ts'
import { certificateSigningRequests } from './resources.ts'

const signer = 'kubernetes.io/kube-apiserver-client'
/** kube-controller-manager's --cluster-signing-duration: how long a certificate lives at most, and by default. */
const maxSeconds = 365 * 24 * 60 * 60
/** kube-controller-manager's minimum lifetime of a certificate. */
const minSeconds = 10 * 60

interface Condition {
  readonly type: string
  readonly status: string
}
interface SigningRequestObject extends KubeObject {
  readonly spec: {
    readonly request: string
    readonly signerName: string
    readonly usages?: readonly string[]
    readonly expirationSeconds?: number
  }
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly Condition[] }
}

/** Watches CertificateSigningRequests until the signal aborts. */
export async function startCertificateSigning(context: ControllerContext): Promise<void> {
  const { signClientRequest } = context
  await reconcileChanged(context, {
    name: 'certificate-signing',
    follow: {
      'certificatesigningrequests.certificates.k8s.io': ({ key: { cluster, name }, exists, contains }, enqueue) => {
        if (exists && contains(signer)) enqueue({ cluster, name })
      },
    },
    reconcile: ({ cluster, name }, { client, signal }) => sign(client, { cluster, name, signClientRequest }, signal),
  })
}

async function sign(
  client: KubeClient,
  { cluster, name, signClientRequest }: { cluster: string; name: string; signClientRequest: SignClientRequest },
  signal: AbortSignal,
): Promise<void> {
  const request = await client.tryGet<SigningRequestObject>(certificateSigningRequests, { name }, { signal })
  if (request === undefined || !isDue(request)) return
  const { spec, status: { conditions = [] } = {} } = request
  const problem = usageError(spec.usages ?? [])
  const status =
    problem === undefined
      ? { conditions, certificate: base64(await signed(spec)) }
      : { conditions: [...conditions, failed(problem)] }
  const options = { subresource: 'status', signal } as const
  await client.update(certificateSigningRequests, { ...request, status }, options).catch(tolerate('NotFound'))

  function signed({ request: encoded, expirationSeconds = maxSeconds }: typeof spec): Promise<string> {
    return signClientRequest({
      request: Buffer.from(encoded, 'base64').toString('latin1'),
      clusterId: cluster,
      seconds: Math.min(Math.max(expirationSeconds, minSeconds), maxSeconds),
    })
  }
}

function isDue({ spec, status: { certificate = '', conditions = [] } = {} }: SigningRequestObject): boolean {
  const is = (type: string): boolean => conditions.some((condition) => condition.type === type)
  return spec.signerName === signer && certificate === '' && is('Approved') && !is('Denied') && !is('Failed')
}

function failed(message: string): object {
  const now = timestamp(systemClock.now())
  const times = { lastUpdateTime: now, lastTransitionTime: now }
  return { type: 'Failed', status: 'True', reason: 'SignerValidationFailed', message, ...times }
}

/**
 * Why the signer kubernetes.io/kube-apiserver-client refuses these usages, in upstream's words; undefined if it does
 * not.
 */
function usageError(usages: readonly string[]): string | undefined {
  const invalid = usages.find((usage) => !['digital signature', 'key encipherment', 'client auth'].includes(usage))
  if (invalid !== undefined) return `invalid usage for client certificate: ${invalid}`
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth'
}
