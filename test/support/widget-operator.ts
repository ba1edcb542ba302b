// A small operator of a member: for each Widget it makes a Deployment, as its controller, and writes the status of the
// Widget. It changes a Deployment back that is not as its Widget says.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { createClient, createInformer, httpTransport, loadKubeconfig } from '#client/index.ts'
import { silentLogger } from '#telemetry/index.ts'

const widgets = { group: 'example.com', version: 'v1', resource: 'widgets' } as const
const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

/** The CustomResourceDefinition of the operator, or one like it with other names. */
export function widgetDefinition(names = { plural: 'widgets', kind: 'Widget' }): object {
  const spec = { type: 'object', properties: { size: { type: 'integer' } } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${names.plural}.example.com` },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names,
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: open } } },
        },
      ],
    },
  }
}

/** A Widget, of whose `size` the operator makes as many pods. */
export function widget(namespace: string, name: string, size: number): object {
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name, namespace }, spec: { size } }
}

/** Starts the operator, which ends with its disposal. `container`: of the pods that it makes. */
export async function startWidgetOperator(kubeconfig: string, container: object): Promise<AsyncDisposable> {
  const life = new AbortController()
  const { signal } = life
  const transport = httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true }))
  const client = createClient(transport)
  const common = { client, log: silentLogger, backoff: { firstMs: 100, maxMs: 1000 }, signal }
  const informers = {
    widgets: createInformer<KubeObject>({ ...common, gvr: widgets }),
    deployments: createInformer<KubeObject>({ ...common, gvr: deployments, labelSelector: 'widget' }),
  }
  const ensure = async (object: KubeObject): Promise<void> => {
    const wanted = deploymentOf(object, container)
    const { namespace = '', name = '' } = wanted.metadata
    const { size = 1 } = object['spec'] as { size?: number }
    const found = await client.tryGet<KubeObject>(deployments, { namespace, name }, { signal })
    if (found === undefined) await client.create(deployments, wanted, { signal })
    else if ((found['spec'] as { replicas?: number }).replicas !== size)
      await client.patch(deployments, { namespace, name }, 'merge', { spec: { replicas: size } }, { signal })
    const { readyReplicas = 0 } = (found?.['status'] ?? {}) as { readyReplicas?: number }
    const isReady = readyReplicas >= size
    const status = {
      observedGeneration: object.metadata.generation ?? 0,
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', reason: 'Counted', message: '' }],
    }
    if (JSON.stringify(object['status']) !== JSON.stringify(status))
      await client.patch(widgets, { namespace, name }, 'merge', { status }, { subresource: 'status', signal })
  }
  let work = Promise.resolve()
  const look = (): void => {
    work = work.then(async () => {
      for (const object of informers.widgets.store.list())
        if (object.metadata.deletionTimestamp === undefined)
          await ensure(object as KubeObject).catch((error: unknown) => {
            if (!isStatusError(error) && !signal.aborted) throw error
          })
    })
  }
  for (const informer of Object.values(informers)) informer.onChange(look)
  return {
    async [Symbol.asyncDispose]() {
      life.abort(new DOMException('the operator was stopped', 'AbortError'))
      await work.catch(() => undefined)
      for (const informer of Object.values(informers)) await informer[Symbol.asyncDispose]()
      await transport[Symbol.asyncDispose]()
    },
  }
}

function deploymentOf({ apiVersion, kind, metadata, spec }: KubeObject, container: object): KubeObject {
  const { name = '', namespace = '', uid = '' } = metadata
  const labels = { widget: name }
  const owner = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels, ownerReferences: [owner] },
    spec: {
      replicas: (spec as { size?: number }).size ?? 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  }
}
