// The controllers that a Kubernetes control plane runs inside a cluster, for all logical clusters at once: no
// controller keeps anything per logical cluster. They learn of changes from the server beside them
// (src/reconcile/object-graph) and write through the API of the logical cluster, as any client does.
import { childSignal } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { ControllerContext, ControllersOptions } from './framework.ts'
import { startBuiltInRegistration, startCrdRegistration } from './api-service-registration.ts'
import { startApiBindings } from './api-bindings.ts'
import { startApiExports } from './api-exports.ts'
import { startInheritedBindings } from './inherited-bindings.ts'
import { startCertificateSigning } from './certificate-signing.ts'
import { startCrdDeletion } from './crd-deletion.ts'
import { startFlowDefaults } from './flow-defaults.ts'
import { startFlowSchemaStatus } from './flow-schema-status.ts'
import { startGarbageCollection } from './garbage-collection.ts'
import { startJobExpiry } from './job-expiry.ts'
import { startNamespaceDefaults } from './namespace-defaults.ts'
import { startNamespaceDeletion } from './namespace-deletion.ts'
import { startPolicyTypes } from './policy-types.ts'
import { startQuotaStatus } from './quota-status.ts'
import { startRoleAggregation } from './role-aggregation.ts'
import { startTokenSecrets } from './token-secrets.ts'
import { startVolumeProtection } from './volume-protection.ts'

/**
 * Starts all controllers and resolves at once. They end with the signal or when disposed; disposal waits for running
 * reconciles. Objects that a logical cluster is created with cause no writes.
 */
export async function startControllers(options: ControllersOptions): Promise<AsyncDisposable> {
  options.signal.throwIfAborted()
  const log = options.log.with({ component: 'controllers' })
  const life = childSignal(options.signal)
  const { signal } = life
  const { graph, cluster } = options
  const clientOf = (id: string): KubeClient | undefined => {
    const name = graph.nameOf(id)
    return name === undefined ? undefined : cluster(name)
  }
  const context: ControllerContext = { ...options, clientOf, log, signal }
  const starts = [
    ...(options.scope === 'apiserver' ? [] : ofControllerManager),
    ...ofApiServer,
    // Last: the controllers above must already listen.
    loadUnfinished,
  ]
  const running = starts
    .map((start) => start(context))
    .map((controller) =>
      controller.catch((error: unknown) => log.error('a controller failed and has ended', { error })),
    )
  return {
    [Symbol.asyncDispose]: async () => {
      life.abort(new DOMException('the controllers were stopped', 'AbortError'))
      life[Symbol.dispose]()
      await Promise.all(running)
    },
  }
}

/** The controllers of kube-controller-manager. */
const ofControllerManager = [
  startNamespaceDeletion,
  startNamespaceDefaults,
  startQuotaStatus,
  startRoleAggregation,
  startVolumeProtection,
  startJobExpiry,
  startGarbageCollection,
  startTokenSecrets,
  startCertificateSigning,
  startPolicyTypes,
  startApiExports,
  startApiBindings,
  startInheritedBindings,
]

/** The controllers that run inside kube-apiserver. */
const ofApiServer = [
  startCrdDeletion,
  startCrdRegistration,
  startFlowDefaults,
  startFlowSchemaStatus,
  startBuiltInRegistration,
]

/** Resumes what an earlier process left unfinished, also in logical clusters that receive no requests. */
async function loadUnfinished({ graph, signal }: ControllerContext): Promise<void> {
  try {
    await graph.loadUnfinished(signal)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
