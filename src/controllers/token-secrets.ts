// Fills Secrets of type kubernetes.io/service-account-token, from which older programs read a token. The token is bound
// to the Secret and has the longest possible lifetime. The Secret is deleted with its ServiceAccount.
import { base64, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { type ControllerContext, reconcileChanged } from './framework.ts'
import { secrets, serviceAccounts } from './resources.ts'

const type = 'kubernetes.io/service-account-token'
const nameAnnotation = 'kubernetes.io/service-account.name'
const uidAnnotation = 'kubernetes.io/service-account.uid'
/** The longest expirationSeconds that a TokenRequest accepts. */
const maxExpirationSeconds = 2 ** 32

interface Secret extends KubeObject {
  data?: Record<string, string>
}
interface TokenRequest extends KubeObject {
  status?: { token?: string }
}

/** Watches Secrets of the type, and deletions of ServiceAccounts. A Secret is decoded only to fill it. */
export async function startTokenSecrets(context: ControllerContext): Promise<void> {
  await reconcileChanged(context, {
    name: 'token-secrets',
    follow: {
      secrets: ({ key: { cluster, namespace, name }, exists, deleting, contains }, enqueue) => {
        if (exists && !deleting && contains(type)) enqueue({ cluster, namespace, name })
      },
      // A place without a namespace stands for all such Secrets of the namespace in its name.
      serviceaccounts: ({ key: { cluster, namespace }, exists }, enqueue) => {
        if (!exists) enqueue({ cluster, name: namespace })
      },
    },
    reconcile: async ({ cluster, namespace, name }, { client, enqueue, signal }) => {
      if (namespace !== undefined) await fillSecret(client, { namespace, name }, context.rootCa, signal)
      else for (const secret of await secretsIn(client, name, signal)) enqueue({ cluster, ...secret })
    },
  })
}

/** The Secrets of the type in a namespace. */
async function secretsIn(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<{ namespace: string; name: string }[]> {
  const options = { namespace, fieldSelector: `type=${type}`, metadataOnly: true, signal }
  try {
    const { items } = await client.list(secrets, options)
    return items.map(({ metadata: { name = '' } }) => ({ namespace, name }))
  } catch (error) {
    // The logical cluster was deleted.
    if (isStatusError(error, 'NotFound')) return []
    throw error
  }
}

/** Completes one Secret, or deletes it if its ServiceAccount does not exist. */
async function fillSecret(
  client: KubeClient,
  ref: { namespace: string; name: string },
  rootCa: string,
  signal: AbortSignal,
): Promise<void> {
  const secret = await client.tryGet<Secret>(secrets, ref, { signal })
  if (secret === undefined || secret['type'] !== type || secret.metadata.deletionTimestamp !== undefined) return
  const { annotations = {}, uid = '' } = secret.metadata
  const { [nameAnnotation]: accountName = '', [uidAnnotation]: accountUid } = annotations
  const { namespace } = ref
  const account = await client.tryGet(serviceAccounts, { namespace, name: accountName }, { signal })
  if (account === undefined || (accountUid !== undefined && accountUid !== account.metadata.uid)) {
    await client.delete(secrets, ref, { uid, signal }).catch(tolerate('NotFound'))
    return
  }
  const { data = {} } = secret
  const wanted = { 'ca.crt': base64(rootCa), namespace: base64(namespace) }
  const isComplete = data['token'] !== undefined && accountUid !== undefined && data['ca.crt'] === wanted['ca.crt']
  if (isComplete && data['namespace'] === wanted.namespace) return
  const token = data['token'] ?? base64(await requestToken(client, accountName, secret, signal))
  const filled: Secret = {
    ...secret,
    metadata: { ...secret.metadata, annotations: { ...annotations, [uidAnnotation]: account.metadata.uid ?? '' } },
    data: { ...data, ...wanted, token },
  }
  await client.update(secrets, filled, { signal }).catch(tolerate('NotFound'))
}

async function requestToken(
  client: KubeClient,
  accountName: string,
  { metadata }: Secret,
  signal: AbortSignal,
): Promise<string> {
  const { name = '', namespace = '', uid = '' } = metadata
  const request: TokenRequest = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: accountName, namespace },
    spec: { expirationSeconds: maxExpirationSeconds, boundObjectRef: { apiVersion: 'v1', kind: 'Secret', name, uid } },
  }
  const { status } = await client.create(serviceAccounts, request, { subresource: 'token', signal })
  if (status?.token === undefined) throw new Error(`the server returned no token for ServiceAccount "${accountName}"`)
  return status.token
}
