// `kcp operator`: reconciles our custom resources in the host, places workloads, syncs members. A Lease in the host
// elects the one active process; the others stand by.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { childSignal, type ChildSignal } from '#async/index.ts'
import { createClient, httpTransport, type KubeClient } from '#client/index.ts'
import { remoteDialer } from '#client/member/index.ts'
import { kcpCrds, type VolumeMoveLimits } from '#crds/index.ts'
import {
  clusterProfilesController,
  ensureCrds,
  operatorMetrics,
  startOperator,
  type RunningOperator,
} from '#operator/index.ts'
import { runAsLeader } from '#reconcile/index.ts'
import type { Logger, Metrics } from '#telemetry/index.ts'
import { renewedClientCertificate } from '#virtualapi/index.ts'
import { installationKeys, installationNamespace, publishedAddress, type Host } from './host-installation.ts'
import { openUsageHistory } from './usage-history.ts'
import { memberControllers } from './member-controllers.ts'

export interface OperatorRoleOptions {
  readonly host: Host
  /** URL of the virtual API server's direct listener; default: the one that the server has published in the host. */
  readonly apiserverUrl?: string
  /** The host's API endpoint as tenants reach it; default: as we reach it. */
  readonly hostUrl?: string
  /** Shows members as ClusterProfiles in our namespace. Default false. */
  readonly clusterProfiles?: boolean
  /** Image of kcp for gateways in members. Default: the image of this version. */
  readonly gatewayImage?: string
  /** The directory below which SnapshotStores with `file` are. Absent: there is none. */
  readonly snapshotDirectory?: string
  /** How many volumes are copied at a time. */
  readonly volumeMoves?: VolumeMoveLimits
  readonly metrics: Metrics
  readonly log: Logger
  readonly signal: AbortSignal
}

const certificateDays = 365
/** Milliseconds between two checks whether the certificate must be renewed. */
const credentialsAgainMs = 5 * 60_000
const leaseName = 'kcp-operator'

/**
 * Starts the operator; resolves once this process leads and all controllers run. It competes for the Lease again after
 * losing it.
 */
export async function startOperatorRole(options: OperatorRoleOptions): Promise<RunningOperator> {
  const { host, log, signal } = options
  const { client, kubeconfig } = host
  await ensureCrds(client, { crds: kcpCrds(), signal })
  const { pki } = await installationKeys(client, signal)
  const credentials = renewedClientCertificate(pki, {
    commonName: 'kcp:operator',
    organizations: ['kcp:system'],
    realm: 'installation',
    days: certificateDays,
  })
  // The name of a metric can be registered only once, and there are many rounds.
  const metrics = operatorMetrics(options.metrics)
  const works = Promise.withResolvers<undefined>()
  /** One round lasts as long as the server keeps its address. */
  const operate = async (direct: string, round: AbortSignal): Promise<void> => {
    const { hostname: host, port } = new URL(direct)
    await using transport = httpTransport({
      refreshAfterMs: credentialsAgainMs,
      async endpoint() {
        const { certificate: cert, key } = await credentials()
        return { server: direct, ca: pki.servingCa, cert, key }
      },
    })
    await using operator = await startOperator({
      clusters: client,
      virtual: (basePath) => createClient(transport, { basePath }),
      urls: (name) => ({
        url: `${options.hostUrl ?? kubeconfig.server}/apis/virtual.kcp.dev/v1alpha1/logicalclusters/${name}/proxy`,
        directURL: `${direct}/clusters/${name}`,
      }),
      issuer: pki,
      dialer: remoteDialer(transport),
      ...(options.snapshotDirectory !== undefined && { snapshotDirectory: options.snapshotDirectory }),
      controllers: [
        ...memberControllers({
          advertise: { host, port: Number(port || 443) },
          usageHistory: (client) => openUsageHistory({ client, writer: 'operator' }),
          ...(options.gatewayImage !== undefined && { gatewayImage: options.gatewayImage }),
          ...(options.volumeMoves !== undefined && { volumeMoves: options.volumeMoves }),
        }),
        ...(options.clusterProfiles === true ? [clusterProfilesController({ namespace: installationNamespace })] : []),
      ],
      metrics,
      log,
      signal: round,
    })
    if (!round.aborted) works.resolve(undefined)
    await operator.done
  }
  const lead = async (term: AbortSignal): Promise<void> => {
    while (!term.aborted) {
      log.info('waiting for kcp apiserver to publish its address', {})
      const direct = options.apiserverUrl ?? (await publishedAddress(client, { log, signal: term }))
      using round = childSignal(term)
      const moved = options.apiserverUrl === undefined ? followAddress(client, direct, round, log) : Promise.resolve()
      try {
        await operate(direct, round.signal)
      } finally {
        round.abort(term.reason)
        await moved
      }
    }
  }
  const life = childSignal(signal)
  const identity = `${hostname()}_${randomUUID()}`
  log.info('standing by to lead', { lease: `${installationNamespace}/${leaseName}`, identity })
  const lease = { client, namespace: installationNamespace, name: leaseName, identity }
  const done = runAsLeader({ ...lease, lead, log, signal: life.signal })
  await Promise.race([works.promise, done])
  return {
    done,
    async [Symbol.asyncDispose]() {
      life.abort(new DOMException('the operator was stopped', 'AbortError'))
      await done
      life[Symbol.dispose]()
    },
  }
}

/** Ends the round when the server publishes another address: it was restarted elsewhere. */
async function followAddress(client: KubeClient, direct: string, round: ChildSignal, log: Logger): Promise<void> {
  try {
    const now = await publishedAddress(client, { otherThan: direct, log, signal: round.signal })
    log.info('kcp apiserver has another address', { before: direct, now })
    round.abort(new DOMException('kcp apiserver has another address', 'AbortError'))
  } catch (error) {
    if (!round.signal.aborted) round.abort(error)
  }
}
