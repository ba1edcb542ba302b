// The members: capacity, what runs there, conditions; cordon, and drain with a preview of what would move.
import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { memberState, placedOn, waitingAgent, type MemberCluster } from '#crds/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { AnyObject } from '#console/kube/objects.ts'
import { messageOf, request } from '#console/kube/request.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { quantityOf } from '#console/table/sort.ts'
import { clusterAnnotation } from '#console/table/rows.ts'
import {
  Age,
  Badge,
  Conditions,
  Dialog,
  Facts,
  Link,
  Meter,
  Notice,
  Plain,
  Plot,
  StateNotice,
} from '#console/parts/common.tsx'
import { OpenProfiles } from '#console/parts/open-profiles.tsx'
import { clusterNames } from '#console/state/clusters.ts'
import { placedWorkloads, usePlacedWorkloads } from '#console/state/placed-workloads.ts'
import { useLiveObjects } from '#console/state/live-objects.ts'
import { session } from '#console/state/session.ts'
import { text } from '#console/text.ts'
import { useLoaded } from '#console/state/load.ts'
import { WorkloadLink } from './moves.tsx'
import { TablePage } from './table.tsx'

const t = text.members

export function MembersPage({ member }: { readonly member?: string | undefined }): JSX.Element {
  const home = session.value?.home
  if (home === undefined) return <TenantMembers />
  return <AdminMembers home={home} member={member} />
}

/** The page of users without rights on the installation: the members that their first logical cluster may use. */
function TenantMembers(): JSX.Element {
  const [cluster] = clusterNames.value
  if (cluster === undefined) return <Notice kind="info">{t.none}</Notice>
  return <TablePage cluster={cluster} resource={{ group: 'kcp.dev', version: 'v1alpha1', resource: 'members' }} />
}

function membersPath(home: string): string {
  return `${home}/apis/kcp.dev/v1alpha1/memberclusters`
}

function AdminMembers({ home, member }: { readonly home: string; readonly member: string | undefined }): JSX.Element {
  const live = useLiveObjects<MemberCluster>(membersPath(home), 'MemberCluster')
  usePlacedWorkloads()
  const { objects: members, state } = live.value
  const one = members.find(({ metadata }) => metadata.name === member)
  return (
    <section class="page">
      <div class="toolbar">
        <h1>{t.title}</h1>
        <span class="count" role="status">
          {state.kind === 'live' ? t.count(members.length) : text.table.listing}
        </span>
      </div>
      <StateNotice state={state} />
      {state.kind === 'live' && members.length === 0 ? <Notice kind="info">{t.noneJoined}</Notice> : null}
      {member !== undefined && one === undefined && state.kind === 'live' ? (
        <Notice kind="bad">{t.unknown(member)}</Notice>
      ) : null}
      <div class="cards">
        {(one === undefined ? members : [one]).map((found) => (
          <MemberCard key={found.metadata.name} member={found} home={home} isOpen={one !== undefined} />
        ))}
      </div>
      {one === undefined ? null : <WorkloadsThere member={one.metadata.name} />}
      <OpenProfiles home={home} {...(member !== undefined && { only: member })} />
    </section>
  )
}

interface MemberCardProps {
  readonly member: MemberCluster
  readonly home: string
  readonly isOpen: boolean
}

function MemberCard({ member, home, isOpen }: MemberCardProps): JSX.Element {
  const { name } = member.metadata
  const { version, nodes, conditions = [], placed = 0, lastHeartbeatTime, moving, held } = member.status ?? {}
  const ready = conditions.find(({ type }) => type === 'Ready')
  return (
    <article class="card member">
      <header>
        <Link to={{ page: 'members', member: name }}>{name}</Link>
        <Badge tone={ready?.status === 'True' ? 'good' : 'bad'}>{ready?.reason ?? t.notObserved}</Badge>
        <Badge tone={memberState(member) === 'Active' ? 'good' : 'wait'}>{memberState(member)}</Badge>
      </header>
      <Facts
        facts={[
          [t.version, <Plain>{version ?? ''}</Plain>],
          [t.nodes, nodes === undefined ? '' : `${nodes.ready} / ${nodes.total}`],
          [t.placed, String(placed)],
          [t.heartbeat, <Age since={lastHeartbeatTime} />],
          [t.way, member.spec?.connection?.agent === undefined ? t.push : t.pull],
          ...tunnelFacts(member),
          ...accessFacts(member),
          ...(moving === undefined ? [] : [[t.moving, String(moving)] as const]),
          ...(held === undefined ? [] : [[t.held, String(held)] as const]),
        ]}
      />
      <Capacity member={member} />
      <StateButtons member={member} home={home} />
      <WaitingAgent member={member} home={home} />
      {isOpen ? <Conditions conditions={conditions} /> : null}
    </article>
  )
}

type Fact = readonly [string, ComponentChildren]

/** The tunnel of a member in pull mode: whether it is open, since when, and to which agent. */
function tunnelFacts({ spec, status }: MemberCluster): Fact[] {
  if (spec?.connection?.agent === undefined) return []
  const reachable = status?.conditions?.find(({ type }) => type === 'Reachable')
  const certificate = status?.agent?.certificates?.at(-1)
  const { since, agentVersion, protocol } = status?.agent?.tunnel ?? {}
  const isOpen = reachable?.status === 'True'
  const at = isOpen ? since : reachable?.lastTransitionTime
  return [
    [
      t.tunnel,
      <span>
        {isOpen ? t.tunnelOpen : t.tunnelClosed} <Age since={at} />
      </span>,
    ],
    ...(protocol === undefined
      ? []
      : [[t.agentVersion, <Plain>{t.agentOf(agentVersion ?? '', protocol)}</Plain>] as const]),
    ...(certificate === undefined ? [] : [[t.certificate, <Plain>{certificate.expires}</Plain>] as const]),
  ]
}

/** The ServiceAccount as which users with access through kcp work in the member. */
function accessFacts({ spec }: MemberCluster): Fact[] {
  const { namespace, name } = spec?.access?.serviceAccountRef ?? {}
  return name === undefined ? [] : [[t.access, <Plain>{`${namespace ?? ''}/${name}`}</Plain>]]
}

function Capacity({ member }: { readonly member: MemberCluster }): JSX.Element {
  const { allocatable = {}, requested = {} } = member.status ?? {}
  const limits = { ...allocatable, ...member.spec?.capacity?.limits }
  return (
    <div class="meters">
      {['cpu', 'memory', 'pods'].map((resource) => {
        const [limit = '', request = '0'] = [limits[resource], requested[resource]]
        const [of, used] = [quantityOf(limit), quantityOf(request)]
        const label = t.requested(resource, request, limit)
        return Number.isNaN(of) ? null : <Meter key={resource} label={label} used={used} of={of} />
      })}
    </div>
  )
}

type State = 'Active' | 'Cordoned' | 'Draining'

function StateButtons({ member, home }: { readonly member: MemberCluster; readonly home: string }): JSX.Element {
  const error = useSignal('')
  const isDraining = useSignal(false)
  const { name } = member.metadata
  const state = memberState(member)
  const set = async (wanted: State): Promise<void> => {
    error.value = ''
    try {
      await patchMember(home, name, { spec: { state: wanted } })
    } catch (caught) {
      error.value = messageOf(caught)
    }
  }
  return (
    <div class="actions">
      {state === 'Active' ? null : (
        <button type="button" onClick={() => void set('Active')}>
          {t.activate}
        </button>
      )}
      {state === 'Active' ? (
        <button type="button" onClick={() => void set('Cordoned')}>
          {t.cordon}
        </button>
      ) : null}
      {state === 'Draining' ? null : (
        <button type="button" onClick={() => (isDraining.value = true)}>
          {t.drain}
        </button>
      )}
      {error.value === '' ? null : <Notice kind="bad">{visibleText(error.value)}</Notice>}
      {isDraining.value ? (
        <DrainDialog name={name} home={home} close={() => (isDraining.value = false)} drain={() => set('Draining')} />
      ) : null}
    </div>
  )
}

/** An agent that asks to be let in; nothing for all other members. */
function WaitingAgent({ member, home }: { readonly member: MemberCluster; readonly home: string }): JSX.Element | null {
  const isOpen = useSignal(false)
  const error = useSignal('')
  const waiting = waitingAgent(member, Date.now())
  if (waiting === undefined) return null
  const { name, resourceVersion } = member.metadata
  const { key, askedAt, approval } = waiting
  const { claims = {} } = member.status?.agent ?? {}
  const approve = async (): Promise<void> => {
    isOpen.value = false
    try {
      // With the revision on the screen, so that the write fails if another agent has asked meanwhile.
      await patchMember(home, name, { metadata: { resourceVersion }, spec: { agent: { approval } } })
    } catch (caught) {
      error.value = messageOf(caught)
    }
  }
  return (
    <div class="actions">
      <button type="button" onClick={() => (isOpen.value = true)}>
        {t.approve}
      </button>
      {error.value === '' ? null : <Notice kind="bad">{visibleText(error.value)}</Notice>}
      {isOpen.value ? (
        <Dialog title={t.approveTitle(name)} close={() => (isOpen.value = false)}>
          <Notice kind="wait">{t.approveHint(name)}</Notice>
          <Facts
            facts={[
              [t.agentKey, <Plain>{key}</Plain>],
              [t.agentAsked, <Age since={askedAt} />],
              [t.agentClaims, <Plain>{`${claims.kubernetesVersion ?? ''} ${claims.kubeSystemUID ?? ''}`}</Plain>],
            ]}
          />
          <div class="actions">
            <button type="button" class="danger" onClick={() => void approve()}>
              {t.approveNow}
            </button>
            <button type="button" onClick={() => (isOpen.value = false)}>
              {text.common.cancel}
            </button>
          </div>
        </Dialog>
      ) : null}
    </div>
  )
}

async function patchMember(home: string, name: string, patch: object): Promise<void> {
  await request(`${membersPath(home)}/${encodeURIComponent(name)}`, {
    method: 'PATCH',
    contentType: 'application/merge-patch+json',
    query: { fieldManager: 'kcp-console' },
    body: JSON.stringify(patch),
  })
}

interface DrainDialogProps {
  readonly name: string
  readonly home: string
  readonly close: () => void
  readonly drain: () => Promise<void>
}

/** What would move where, by the operator's own functions, before anything is written. */
function DrainDialog({ name, home, close, drain }: DrainDialogProps): JSX.Element {
  const preview = useLoaded(
    async (signal) => {
      const { drainPreview } = await import('#console/lazy/placement.ts')
      return drainPreview(home, name, signal)
    },
    [name],
  )
  const { value, error } = preview.value
  const stay = value?.filter(({ to }) => to.length === 0).length ?? 0
  return (
    <Dialog title={t.drainTitle(name)} close={close}>
      {error === undefined ? null : <Notice kind="bad">{visibleText(error)}</Notice>}
      {value === undefined && error === undefined ? <Notice kind="info">{t.computing}</Notice> : null}
      {value === undefined ? null : (
        <>
          <Notice kind={stay > 0 ? 'wait' : 'good'}>{t.preview(value.length, stay)}</Notice>
          <Plot head={[t.workload, t.goesTo, t.blockedBy]}>
            {value.map(({ logicalCluster, kind, namespace, name: workload, to, blockedBy }) => (
              <tr key={`${logicalCluster}/${kind}/${namespace}/${workload}`}>
                <td>{`${logicalCluster} / ${namespace} / ${kind.toLowerCase()} ${workload}`}</td>
                <td>{to.length === 0 ? <Badge tone="bad">{t.stays}</Badge> : to.join(', ')}</td>
                <td class="wrap">
                  <Plain>{blockedBy ?? ''}</Plain>
                </td>
              </tr>
            ))}
          </Plot>
        </>
      )}
      <div class="actions">
        <button
          type="button"
          class="danger"
          onClick={() => {
            close()
            void drain()
          }}
        >
          {t.drainNow}
        </button>
        <button type="button" onClick={close}>
          {text.common.cancel}
        </button>
      </div>
    </Dialog>
  )
}

function WorkloadsThere({ member }: { readonly member: string }): JSX.Element {
  const { objects } = placedWorkloads.value
  const there = useMemo(() => objects.filter((object) => copyIn(object, member) !== undefined), [objects, member])
  return (
    <>
      <h2>{t.runsThere(there.length)}</h2>
      <Plot head={[t.workload, t.state, t.since]}>
        {there.slice(0, 500).map((object) => (
          <tr key={object.metadata.uid}>
            <td>
              <WorkloadLink object={object} cluster={object.metadata.annotations?.[clusterAnnotation] ?? ''} />
            </td>
            <td>
              <Badge>{copyIn(object, member)?.state ?? ''}</Badge>
            </td>
            <td>
              <Age since={copyIn(object, member)?.since} />
            </td>
          </tr>
        ))}
      </Plot>
      {there.length > 500 ? <p class="quiet">{t.more(there.length - 500)}</p> : null}
    </>
  )
}

function copyIn(object: AnyObject, member: string): ReturnType<typeof placedOn>[string] | undefined {
  return placedOn(object as unknown as KubeObject)[member]
}
