// The frame of all pages: navigation, choosers, keys.
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { resourcesOf } from '#console/kube/discovery.ts'
import { everyCluster, parseResource, resourceText, type ResourceRef } from '#console/kube/paths.ts'
import { AdoptionsPage } from '#console/pages/adoptions.tsx'
import { ClustersPage } from '#console/pages/clusters.tsx'
import { AuditPage } from '#console/pages/audit.tsx'
import { ExplainPage } from '#console/pages/explain.tsx'
import { MembersPage } from '#console/pages/members.tsx'
import { MovesPage } from '#console/pages/moves.tsx'
import { ObjectPage } from '#console/pages/object.tsx'
import { SignInPage } from '#console/pages/sign-in.tsx'
import { SleepPage } from '#console/pages/sleep.tsx'
import { SnapshotsPage } from '#console/pages/snapshots.tsx'
import { TablePage } from '#console/pages/table.tsx'
import { UsagePage } from '#console/pages/usage.tsx'
import { VolumesPage } from '#console/pages/volumes.tsx'
import { Dialog, Plot } from '#console/parts/common.tsx'
import type { Choice } from '#console/model/matching.ts'
import { Palette } from '#console/parts/palette.tsx'
import { chooser } from '#console/state/chooser.ts'
import { clusterNames, readClusters } from '#console/state/clusters.ts'
import { keyMaps, useKeys } from '#console/state/keys.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { useLoaded } from '#console/state/load.ts'
import { fragmentOf, go, route, type Route } from '#console/state/router.ts'
import { session, signOut } from '#console/state/session.ts'
import { nextTheme, theme } from '#console/state/theme.ts'
import { text } from '#console/text.ts'

const pods: ResourceRef = { group: '', version: 'v1', resource: 'pods' }
const exports_: ResourceRef = { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports' }
const bindings: ResourceRef = { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apibindings' }
const deployments: ResourceRef = { group: 'apps', version: 'v1', resource: 'deployments' }

export function App(): JSX.Element | null {
  if (session.value === undefined) return null
  if (session.value === null) return <SignInPage />
  return <SignedIn />
}

function SignedIn(): JSX.Element {
  useEffect(() => {
    void readClusters().catch(() => undefined)
  }, [])
  useKeys(globalKeys)
  return (
    <div class="frame">
      <Navigation />
      <main>
        <Page route={route.value} />
      </main>
      <Chooser />
    </div>
  )
}

const globalKeys = {
  '?': { help: text.help.help, run: () => (chooser.value = 'help') },
  ':': { help: text.help.chooseKind, run: () => (chooser.value = 'kind') },
  '@': { help: text.help.chooseCluster, run: () => (chooser.value = 'cluster') },
  'g c': { help: text.nav.clusters, run: () => go({ page: 'clusters' }) },
  'g d': { help: text.nav.deployments, run: () => go(tableRoute(deployments)) },
  'g p': { help: text.nav.pods, run: () => go(tableRoute(pods)) },
  'g m': { help: text.nav.members, run: () => go({ page: 'members' }) },
  'g o': { help: text.nav.adoptions, run: () => go({ page: 'adoptions' }) },
  'g v': { help: text.nav.moves, run: () => go({ page: 'moves' }) },
  'g l': { help: text.nav.volumes, run: () => go({ page: 'volumes' }) },
  'g a': { help: text.nav.exports, run: () => go(tableRoute(exports_)) },
  'g b': { help: text.nav.bindings, run: () => go(tableRoute(bindings)) },
  'g u': { help: text.nav.usage, run: () => go({ page: 'usage' }) },
  'g i': { help: text.nav.audit, run: () => go({ page: 'audit' }) },
  'g z': { help: text.nav.sleep, run: () => go({ page: 'sleep' }) },
  'g s': { help: text.nav.snapshots, run: () => go({ page: 'snapshots' }) },
  'g x': { help: text.nav.explain, run: () => go({ page: 'explain' }) },
  'g t': { help: text.help.theme, run: nextTheme },
}

/** The table of a kind in the logical cluster of the present page, or in all. */
function tableRoute(resource: ResourceRef): Route {
  return { page: 'table', cluster: clusterOf(route.value) ?? everyCluster, resource }
}

function clusterOf(of: Route): string | undefined {
  if (of.page === 'table' || isOfCluster(of)) return of.cluster
  return of.page === 'object' ? of.object.cluster : undefined
}

/** Pages of one logical cluster, which the chooser of logical clusters changes. */
function isOfCluster(of: Route): of is Extract<Route, { readonly page: 'explain' | 'usage' | 'audit' }> {
  return of.page === 'explain' || of.page === 'usage' || of.page === 'audit'
}

function Page({ route: of }: { readonly route: Route }): JSX.Element {
  switch (of.page) {
    case 'table':
      return (
        <TablePage key={`${of.cluster}/${resourceText(of.resource)}`} cluster={of.cluster} resource={of.resource} />
      )
    case 'object':
      return <ObjectPage target={of.object} tab={of.tab} />
    case 'members':
      return <MembersPage member={of.member} />
    case 'adoptions':
      return <AdoptionsPage adoption={of.adoption} />
    case 'moves':
      return <MovesPage />
    case 'volumes':
      return <VolumesPage move={of.move} />
    case 'usage':
      return <UsagePage cluster={of.cluster} />
    case 'audit':
      return <AuditPage cluster={of.cluster} />
    case 'sleep':
      return <SleepPage />
    case 'snapshots':
      return <SnapshotsPage />
    case 'explain':
      return <ExplainPage cluster={of.cluster} />
    default:
      return <ClustersPage />
  }
}

function Navigation(): JSX.Element {
  const items: readonly (readonly [string, Route, string])[] = [
    [text.nav.clusters, { page: 'clusters' }, 'g c'],
    [text.nav.deployments, { page: 'table', cluster: everyCluster, resource: deployments }, 'g d'],
    [text.nav.pods, { page: 'table', cluster: everyCluster, resource: pods }, 'g p'],
    [text.nav.members, { page: 'members' }, 'g m'],
    [text.nav.adoptions, { page: 'adoptions' }, 'g o'],
    [text.nav.moves, { page: 'moves' }, 'g v'],
    [text.nav.volumes, { page: 'volumes' }, 'g l'],
    [text.nav.exports, { page: 'table', cluster: everyCluster, resource: exports_ }, 'g a'],
    [text.nav.bindings, { page: 'table', cluster: everyCluster, resource: bindings }, 'g b'],
    [text.nav.usage, { page: 'usage' }, 'g u'],
    [text.nav.audit, { page: 'audit' }, 'g i'],
    [text.nav.sleep, { page: 'sleep' }, 'g z'],
    [text.nav.snapshots, { page: 'snapshots' }, 'g s'],
    [text.nav.explain, { page: 'explain' }, 'g x'],
  ]
  const here = fragmentOf(route.value)
  return (
    <nav class="side" aria-label={text.nav.label}>
      <a class="brand" href="#/clusters">
        kcp
      </a>
      <ul>
        {items.map(([label, to, keys]) => (
          <li key={label}>
            <a href={fragmentOf(to)} title={keys} aria-current={fragmentOf(to) === here ? 'page' : undefined}>
              {label}
            </a>
          </li>
        ))}
      </ul>
      <div class="side-end">
        <button type="button" onClick={() => (chooser.value = 'kind')} title=":">
          {text.nav.kinds}
        </button>
        <button type="button" onClick={() => (chooser.value = 'help')} title="?">
          {text.nav.keys}
        </button>
        <button type="button" onClick={nextTheme}>
          {text.theme[theme.value]}
        </button>
        <button type="button" onClick={() => void signOut()}>
          {text.nav.signOut}
        </button>
        <p class="quiet who">{visibleText(text.nav.signedInAs(session.value?.user ?? ''))}</p>
      </div>
    </nav>
  )
}

function Chooser(): JSX.Element | null {
  const { value } = chooser
  // A browser says late that a dialog has closed: another one may be open by then.
  const close = (): void => {
    if (chooser.value === value) chooser.value = undefined
  }
  if (value === 'help') return <Help key={value} close={close} />
  if (value === 'kind') return <KindChooser key={value} close={close} />
  if (value === 'cluster') return <ClusterChooser key={value} close={close} />
  return null
}

function ClusterChooser({ close }: { readonly close: () => void }): JSX.Element {
  const to = (cluster: string): void => {
    const { value } = route
    if (isOfCluster(value)) go({ page: value.page, cluster })
    else go({ page: 'table', cluster, resource: value.page === 'table' ? value.resource : deployments })
  }
  const every = isOfCluster(route.value)
    ? []
    : [{ label: text.table.allClusters, words: '* all', run: () => to(everyCluster) }]
  const choices = clusterNames.value.map((name): Choice => ({ label: name, run: () => to(name) }))
  const other = (typed: string): Choice | undefined =>
    /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(typed)
      ? { label: typed, hint: text.palette.byName, run: () => to(typed) }
      : undefined
  return <Palette title={text.palette.cluster} choices={[...every, ...choices]} close={close} other={other} />
}

function KindChooser({ close }: { readonly close: () => void }): JSX.Element {
  const cluster = clusterOf(route.value) ?? everyCluster
  // All logical clusters serve the built-in kinds; for their own kinds, the first one stands for all.
  const of = cluster === everyCluster ? (clusterNames.value[0] ?? 'root') : cluster
  const resources = useLoaded(() => resourcesOf(of), [of])
  const to = (resource: ResourceRef): void => go({ page: 'table', cluster, resource })
  const choices = (resources.value.value ?? []).map((resource): Choice => ({
    label: resource.kind,
    hint: resourceText(resource),
    words: [resource.resource, ...resource.shortNames].join(' '),
    run: () => to(resource),
  }))
  const other = (typed: string): Choice | undefined => {
    const resource = parseResource(...typed.split('/'))
    return resource === undefined ? undefined : { label: typed, hint: text.palette.byName, run: () => to(resource) }
  }
  return <Palette title={text.palette.kind(cluster)} choices={choices} close={close} other={other} />
}

function Help({ close }: { readonly close: () => void }): JSX.Element {
  const all = Object.entries(Object.assign({}, ...keyMaps.value) as Record<string, { readonly help: string }>)
  return (
    <Dialog title={text.help.title} close={close}>
      <Plot head={[text.help.key, text.help.action]}>
        {all.map(([key, { help }]) => (
          <tr key={key}>
            <td>
              <kbd>{key}</kbd>
            </td>
            <td>{help}</td>
          </tr>
        ))}
      </Plot>
      <p class="quiet">{text.table.filterHint}</p>
    </Dialog>
  )
}
