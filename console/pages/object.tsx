// The page of one object, with a tab for each question about it.
import type { JSX } from 'preact'
import { resourceOfKind, resourcesOf, type Resource } from '#console/kube/discovery.ts'
import { metadataListType } from '#console/kube/object-store.ts'
import { conditionsOf, recordsOf, stringOf, type AnyObject, type OwnerReference } from '#console/kube/objects.ts'
import { listPath, objectPath, type ObjectRef } from '#console/kube/paths.ts'
import { requestJson } from '#console/kube/request.ts'
import { ownedBy, type Candidate, type OwnedNode } from '#console/model/owned.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Age, Command, Conditions, Facts, Link, Notice } from '#console/parts/common.tsx'
import { useKeys, type KeyMap } from '#console/state/keys.ts'
import { useLoaded } from '#console/state/load.ts'
import { go, type ObjectTab } from '#console/state/router.ts'
import { text } from '#console/text.ts'
import { EventsTab } from './events.tsx'
import { ExplainTab } from './explain.tsx'
import { LogsTab } from './logs.tsx'
import { TerminalTab } from './terminal.tsx'
import { WhereTab } from './where.tsx'
import { YamlTab } from './yaml.tsx'

const t = text.object

interface ObjectPageProps {
  readonly target: ObjectRef
  readonly tab: ObjectTab
}

const tabKeys: Readonly<Record<ObjectTab, string>> = {
  overview: 'o',
  yaml: 'y',
  events: 'e',
  owners: 'w',
  where: 'p',
  logs: 'l',
  terminal: 's',
  explain: 'x',
}

export function ObjectPage({ target, tab }: ObjectPageProps): JSX.Element {
  const loaded = useLoaded(
    (signal) => requestJson<AnyObject>(objectPath(target), { signal }),
    [objectPath(target)],
    3000,
  )
  const tabs = tabsOf(target)
  useTabKeys(target, tabs)
  const { value: object, error } = loaded.value
  return (
    <section class="page fill">
      <div class="toolbar">
        <Crumbs target={target} />
        {object === undefined ? null : (
          <span class="count">
            {stringOf(object.kind)} · <Age since={object.metadata.creationTimestamp} />
          </span>
        )}
      </div>
      <nav class="tabs" aria-label={t.tabs}>
        {tabs.map((one) => (
          <a
            key={one}
            href={`#/${hrefOf(target, one)}`}
            aria-current={one === tab ? 'page' : undefined}
            title={`${t.key} ${tabKeys[one]}`}
          >
            {t.tab[one]}
          </a>
        ))}
      </nav>
      {error === undefined ? null : <Notice kind="bad">{visibleText(error)}</Notice>}
      {object?.metadata.deletionTimestamp === undefined ? null : (
        <Notice kind="wait">{t.beingDeleted(object.metadata.deletionTimestamp)}</Notice>
      )}
      {object === undefined ? null : <TabView target={target} tab={tab} object={object} />}
    </section>
  )
}

function hrefOf({ cluster, group, version, resource, namespace, name }: ObjectRef, tab: ObjectTab): string {
  const parts = ['o', cluster, group === '' ? 'core' : group, version, resource, namespace || '-', name, tab]
  return parts.map(encodeURIComponent).join('/')
}

/** Containers are in pods; everything else is known of every object. */
function tabsOf({ group, resource }: ObjectRef): ObjectTab[] {
  const isPod = group === '' && resource === 'pods'
  return ['overview', 'yaml', 'events', 'owners', 'where', ...(isPod ? (['logs', 'terminal'] as const) : []), 'explain']
}

function useTabKeys(target: ObjectRef, tabs: readonly ObjectTab[]): void {
  const map: KeyMap = Object.fromEntries(
    tabs.map((tab) => [tabKeys[tab], { help: t.tab[tab], run: () => go({ page: 'object', object: target, tab }) }]),
  )
  const up = { help: text.help.back, run: () => go({ page: 'table', cluster: target.cluster, resource: target }) }
  useKeys({ ...map, u: up, Escape: up }, [objectPath(target)])
}

function Crumbs({ target }: { readonly target: ObjectRef }): JSX.Element {
  const { cluster, namespace, name, resource } = target
  return (
    <h1 class="crumbs">
      <Link to={{ page: 'table', cluster, resource: target }}>{`${cluster} / ${resource}`}</Link>
      <span aria-hidden="true">/</span>
      <span>{visibleText(namespace === '' ? name : `${namespace} / ${name}`)}</span>
    </h1>
  )
}

interface TabProps {
  readonly target: ObjectRef
  readonly object: AnyObject
}

function TabView({ target, tab, object }: TabProps & { readonly tab: ObjectTab }): JSX.Element {
  const key = objectPath(target)
  switch (tab) {
    case 'yaml':
      return <YamlTab key={key} target={target} />
    case 'events':
      return <EventsTab key={object.metadata.uid} target={target} object={object} />
    case 'owners':
      return <OwnersTab key={key} target={target} object={object} />
    case 'where':
      return <WhereTab key={key} target={target} object={object} />
    case 'logs':
      return <LogsTab key={key} target={target} object={object} />
    case 'terminal':
      return <TerminalTab key={key} target={target} object={object} />
    case 'explain':
      return <ExplainTab key={key} target={target} object={object} />
    default:
      return <Overview key={key} target={target} object={object} />
  }
}

function Overview({ target, object }: TabProps): JSX.Element {
  const { labels = {}, annotations = {}, uid = '', creationTimestamp } = object.metadata
  const commands = commandsFor(target, object)
  return (
    <div class="content">
      <Facts
        facts={[
          [t.created, creationTimestamp ?? ''],
          [t.uid, uid],
          [t.labels, <Pairs pairs={labels} />],
          [t.annotations, <Pairs pairs={annotations} />],
        ]}
      />
      <h2>{t.conditions}</h2>
      <Conditions conditions={conditionsOf(object)} />
      {commands.length === 0 ? null : <h2>{t.commands}</h2>}
      {commands.map((command) => (
        <Command key={command}>{command}</Command>
      ))}
    </div>
  )
}

function Pairs({ pairs }: { readonly pairs: Readonly<Record<string, string>> }): JSX.Element {
  return (
    <ul class="pairs">
      {Object.entries(pairs).map(([name, value]) => (
        <li key={name}>
          <code>{visibleText(name)}</code>
          <span title={visibleText(value)}>{visibleText(value.length > 300 ? `${value.slice(0, 300)}…` : value)}</span>
        </li>
      ))}
    </ul>
  )
}

/** Commands for a terminal of the user's own: forwarding of ports to pods and Services. */
function commandsFor({ cluster, namespace, name, resource }: ObjectRef, object: AnyObject): string[] {
  const ports = resource === 'services' ? portsOfService(object) : resource === 'pods' ? portsOfPod(object) : []
  const kind = resource === 'services' ? 'service' : 'pod'
  return [...new Set(ports)].slice(0, 10).map((port) => {
    const local = port < 1024 ? port + 8000 : port
    return `kcp connect ${cluster} -- kubectl -n ${namespace} port-forward ${kind}/${name} ${local}:${port}`
  })
}

function portsOfService({ spec }: AnyObject): number[] {
  return recordsOf(spec?.['ports']).map(({ port }) => Number(port))
}

function portsOfPod({ spec }: AnyObject): number[] {
  return recordsOf(spec?.['containers']).flatMap(({ ports }) =>
    recordsOf(ports).map(({ containerPort }) => Number(containerPort)),
  )
}

/** Kinds whose objects are looked through for owned ones: all that Kubernetes' own controllers make. */
const ownedKinds: readonly string[] = [
  'pods',
  'replicasets',
  'jobs',
  'controllerrevisions',
  'endpointslices',
  'persistentvolumeclaims',
  'deployments',
  'statefulsets',
  'services',
  'configmaps',
  'secrets',
]

function OwnersTab({ target, object }: TabProps): JSX.Element {
  const owned = useLoaded((signal) => ownedOf(target, object, signal), [object.metadata.uid], 10_000)
  const owners = object.metadata.ownerReferences ?? []
  return (
    <div class="content">
      <h2>{t.owners}</h2>
      {owners.length === 0 ? <p class="quiet">{t.noOwners}</p> : null}
      <ul class="tree">
        {owners.map((owner) => (
          <OwnerItem key={owner.uid} owner={owner} target={target} />
        ))}
      </ul>
      <h2>{t.owned}</h2>
      {owned.value.error === undefined ? null : <Notice kind="bad">{visibleText(owned.value.error)}</Notice>}
      {owned.value.value?.length === 0 ? <p class="quiet">{t.ownsNothing}</p> : null}
      <OwnedTree nodes={owned.value.value ?? []} cluster={target.cluster} />
    </div>
  )
}

async function ownedOf(target: ObjectRef, object: AnyObject, signal: AbortSignal): Promise<OwnedNode[]> {
  if (target.namespace === '') return []
  const resources = (await resourcesOf(target.cluster)).filter(({ resource }) => ownedKinds.includes(resource))
  const lists = await Promise.all(resources.map((resource) => metadataIn(target, resource, signal)))
  return ownedBy(object.metadata.uid ?? '', lists.flat())
}

/** At most 5,000 objects of a kind, so that a namespace with very many does not stop the page. */
async function metadataIn(
  { cluster, namespace }: ObjectRef,
  resource: Resource,
  signal: AbortSignal,
): Promise<Candidate[]> {
  const list = await requestJson<{ items?: readonly AnyObject[] }>(listPath(cluster, resource, namespace), {
    accept: metadataListType,
    query: { limit: '5000' },
    signal,
  }).catch(() => ({ items: [] }))
  return (list.items ?? []).map(({ metadata }) => ({ resource, metadata }))
}

function OwnerItem({ owner, target }: { readonly owner: OwnerReference; readonly target: ObjectRef }): JSX.Element {
  const resources = useLoaded(() => resourcesOf(target.cluster), [target.cluster])
  const resource = resourceOfKind(resources.value.value ?? [], owner)
  const label = visibleText(`${owner.kind} ${owner.name}`)
  if (resource === undefined) return <li>{label}</li>
  const namespace = resource.namespaced ? target.namespace : ''
  const object = { ...resource, cluster: target.cluster, namespace, name: owner.name }
  return (
    <li>
      <Link to={{ page: 'object', object, tab: 'overview' }}>{label}</Link>
    </li>
  )
}

function OwnedTree({
  nodes,
  cluster,
}: {
  readonly nodes: readonly OwnedNode[]
  readonly cluster: string
}): JSX.Element {
  return (
    <ul class="tree">
      {nodes.map(({ resource, metadata, owned }) => (
        <li key={metadata.uid}>
          <Link
            to={{
              page: 'object',
              object: { ...resource, cluster, namespace: metadata.namespace ?? '', name: metadata.name },
              tab: 'overview',
            }}
          >
            {visibleText(`${resource.kind} ${metadata.name}`)}
          </Link>{' '}
          <Age since={metadata.creationTimestamp} />
          {owned.length === 0 ? null : <OwnedTree nodes={owned} cluster={cluster} />}
        </li>
      ))}
    </ul>
  )
}
