// A member in pull mode whose agent runs in the test's process.
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { Forwarder, keepTunnel } from '#agent/index.ts'
import { loadKubeconfig, type KubeClient } from '#client/index.ts'
import { memberClusters, type MemberCluster } from '#crds/index.ts'
import type { TunnelOffer } from '#network/tunnel/index.ts'
import { silentLogger, type Logger } from '#telemetry/index.ts'
import type { Pki } from '#virtualapi/index.ts'

/** A MemberCluster in pull mode, and the certificate of its agent with the key, PEM. */
export interface TunnelledMember {
  readonly name: string
  readonly uid: string
  readonly certificate: string
  readonly key: string
}

interface Installation {
  /** The API with the MemberClusters. */
  readonly clusters: KubeClient
  readonly pki: Pki
  readonly signal: AbortSignal
}

/** Creates a MemberCluster whose agent is enrolled already. */
export async function registerInPullMode(
  name: string,
  { clusters, pki, signal }: Installation,
): Promise<TunnelledMember> {
  const hash = '0'.repeat(64)
  const object: MemberCluster = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name },
    spec: { connection: { agent: {} }, agent: { token: { hash, expires: inAnHour(), approves: true } } },
  }
  const uid = (await clusters.create<MemberCluster>(memberClusters, object, { signal })).metadata.uid ?? ''
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const certificate = await pki.signAgentKey({ member: name, uid, publicKey: spki, seconds: 3600 })
  const fingerprint = new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase()
  const agent = { token: hash, key: `SHA256:${'A'.repeat(43)}`, certificates: [{ fingerprint, expires: inAnHour() }] }
  await clusters.patch(memberClusters, { name }, 'merge', { status: { agent } }, { subresource: 'status', signal })
  return { name, uid, certificate, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
}

/** Keeps the tunnel of the member open until the signal aborts. `kubeconfig`: that of the member, as text. */
export async function runAgent(
  { name, certificate, key }: TunnelledMember,
  installation: { readonly url: string; readonly ca: string },
  {
    kubeconfig,
    log = silentLogger,
    ...options
  }: { readonly kubeconfig: string; readonly signal: AbortSignal; readonly log?: Logger; readonly offer?: TunnelOffer },
): Promise<void> {
  using forwarder = new Forwarder({ api: await loadKubeconfig({ text: kubeconfig }), log })
  const client = () => ({ certificate, key })
  await keepTunnel({ installation, member: name, client, forwarder, log, ...options })
}

const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z')
