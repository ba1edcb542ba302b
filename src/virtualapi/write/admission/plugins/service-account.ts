// The ServiceAccount of a pod: its name, its token volume, and its secrets for pulling images.
import { sleep } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { generatedName } from '#virtualapi/kinds/resources/object-meta.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { chargeAdded, decodeConfiguration } from '#virtualapi/write/admission/stored-configuration.ts'
import { secretsOutside, type AccountSecrets } from './mountable-secrets.ts'

interface Container {
  name?: string
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[]
}
interface Spec {
  serviceAccountName?: string
  serviceAccount?: string
  automountServiceAccountToken?: boolean
  imagePullSecrets?: { name?: string }[]
  containers?: Container[]
  initContainers?: Container[]
  volumes?: ({ name: string } & Record<string, unknown>)[]
}
interface Account extends KubeObject, AccountSecrets {
  automountServiceAccountToken?: boolean
}

const defaultName = 'default'
const mirrorAnnotation = 'kubernetes.io/config.mirror'
const tokenPath = '/var/run/secrets/kubernetes.io/serviceaccount'
const volumePrefix = 'kube-api-access-'
/**
 * One hour and 7 s. Because of the 7 s, upstream can distinguish these tokens from tokens that pods request themselves.
 */
const tokenSeconds = 3607
/** The wait for the default account, which a new namespace gets a moment later. */
const waits = { tries: 9, ms: 150 }

/** Refuses with 403 a pod whose ServiceAccount is missing, or that uses secrets that its account may not use. */
export const serviceAccount: AdmissionPlugin = {
  name: 'ServiceAccount',
  mutate(request, object) {
    if (!isNewPod(request) || isMirror(object)) return undefined
    const spec = object['spec'] as Spec | undefined
    if (spec === undefined) return undefined
    const name = (spec.serviceAccountName ||= defaultName)
    spec.serviceAccount = name
    const found = accountOf(request, name)
    if (found === undefined) return whenThere(request, name).then((account) => complete(spec, account, request))
    complete(spec, found, request)
    return undefined
  },
  validate(request, object) {
    const isDebug = request.subresource === 'ephemeralcontainers' && isPod(request)
    if (object === undefined || (!isNewPod(request) && !isDebug) || isMirror(object)) return
    const { serviceAccountName = '' } = object['spec'] as Spec
    const account = accountOf(request, serviceAccountName)
    if (account === undefined) throw missing(request, serviceAccountName)
    const problem = secretsOutside(account, object, { onlyDebugged: isDebug })
    if (problem !== undefined) throw refused(request, problem)
  },
}

function isPod({ definition: { info }, context }: AdmissionRequest): boolean {
  // Pods that the syncer copies from members have their volumes already.
  return info.group === '' && info.resource === 'pods' && context.user.realm.kind !== 'installation'
}

function isNewPod(request: AdmissionRequest): boolean {
  return request.operation === 'CREATE' && request.subresource === '' && isPod(request)
}

/** True for a mirror pod of a kubelet's static pod, which runs already, without an account. */
function isMirror({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[mirrorAnnotation] !== undefined
}

function accountOf(request: AdmissionRequest, name: string): Account | undefined {
  const entry = request.context.objects.get('serviceaccounts', request.namespace, name)
  if (entry === undefined) return undefined
  return decodeConfiguration(request, [entry], () => `ServiceAccount ${JSON.stringify(name)}`)[0]
}

async function whenThere(request: AdmissionRequest, name: string): Promise<Account> {
  for (let left = name === defaultName ? waits.tries : 0; left > 0; left--) {
    await sleep(waits.ms, request.signal)
    const account = accountOf(request, name)
    if (account !== undefined) return account
  }
  throw missing(request, name)
}

function missing(request: AdmissionRequest, name: string): Error {
  const { namespace } = request
  return refused(
    request,
    `error looking up service account ${namespace}/${name}: serviceaccount ${JSON.stringify(name)} not found`,
  )
}

function refused({ definition, name }: AdmissionRequest, text: string): Error {
  return forbidden(definition.info, name, text)
}

function complete(spec: Spec, account: Account, request: AdmissionRequest): void {
  if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(spec)
  const pullSecrets = account.imagePullSecrets ?? []
  if ((spec.imagePullSecrets?.length ?? 0) > 0 || pullSecrets.length === 0) return
  chargeAdded(request, 2 * pullSecrets.length, () => `ServiceAccount ${JSON.stringify(account.metadata.name)}`)
  spec.imagePullSecrets = pullSecrets.map(({ name = '' }) => ({ name }))
}

/** Mounts the token into every container that has no other mount at its path. */
function mountToken(spec: Spec): void {
  const own = spec.volumes?.find(({ name }) => name.startsWith(volumePrefix))
  const name = own?.name ?? generatedName(volumePrefix)
  let isMounted = false
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (container.volumeMounts?.some(({ mountPath }) => mountPath === tokenPath) === true) continue
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: tokenPath }]
    isMounted = true
  }
  if (own === undefined && isMounted) spec.volumes = [...(spec.volumes ?? []), { name, projected: tokenSources() }]
}

function tokenSources(): Record<string, unknown> {
  const namespace = { apiVersion: 'v1', fieldPath: 'metadata.namespace' }
  return {
    sources: [
      { serviceAccountToken: { expirationSeconds: tokenSeconds, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: namespace }] } },
    ],
    defaultMode: 420,
  }
}
