// `kcp operator`: reconciles our custom resources in the host, places workloads, syncs members.
import { createClient, httpTransport } from '../../client/index.ts'
import { kcpCrds } from '../../crds/index.ts'
import { ensureCrds, startOperator, type RunningOperator } from '../../operator/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import { installationKeys, publishedAddress, type Host } from './host-installation.ts'
import { memberControllers } from './member-controllers.ts'

export interface OperatorRoleOptions {
  readonly host: Host
  /** Of the virtual API server's direct listener; default: what the server has published in the host. */
  readonly apiserverUrl?: string
  readonly log: Logger
  readonly signal: AbortSignal
}

const certificateDays = 365

/** Starts it; resolves once all controllers work. */
export async function startOperatorRole(options: OperatorRoleOptions): Promise<RunningOperator> {
  const { host, log, signal } = options
  const { client, kubeconfig } = host
  await ensureCrds(client, { crds: kcpCrds(), signal })
  const { pki } = await installationKeys(client, signal)
  if (options.apiserverUrl === undefined) log.info('waiting for kcp apiserver to tell its address', {})
  const direct = options.apiserverUrl ?? (await publishedAddress(client, signal))
  const identity = await pki.issueClientCertificate({
    commonName: 'kcp:operator',
    organizations: ['kcp:system'],
    realm: 'installation',
    days: certificateDays,
  })
  const transport = httpTransport({ server: direct, ca: pki.servingCa, cert: identity.certificate, key: identity.key })
  const url = new URL(direct)
  const operator = await startOperator({
    clusters: client,
    virtual: (basePath) => createClient(transport, { basePath }),
    urls: (name) => ({
      url: `${kubeconfig.server}/apis/virtual.kcp.dev/v1alpha1/logicalclusters/${name}/proxy`,
      directURL: `${direct}/clusters/${name}`,
    }),
    controllers: memberControllers({ advertise: { host: url.hostname, port: Number(url.port || 443) } }),
    log,
    signal,
  })
  return {
    done: operator.done,
    async [Symbol.asyncDispose]() {
      await operator[Symbol.asyncDispose]()
      await transport[Symbol.asyncDispose]()
    },
  }
}
