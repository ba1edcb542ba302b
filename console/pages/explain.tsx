// "Why is nothing happening?" for an object or a logical cluster: each finding with its age, what it waits for, what to
// do. The words are those of `kcp explain`.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Finding } from '#explain/index.ts'
import { resourceOfKindName, resourcesOf, type Resource } from '#console/kube/discovery.ts'
import type { AnyObject } from '#console/kube/objects.ts'
import { objectPath, type ObjectRef } from '#console/kube/paths.ts'
import { findingsIn, findingsOf } from '#console/kube/surroundings.ts'
import { durationText } from '#console/model/age.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Age, Badge, Link, Notice } from '#console/parts/common.tsx'
import { chooser } from '#console/state/chooser.ts'
import { now } from '#console/state/clock.ts'
import { useLoaded } from '#console/state/load.ts'
import type { Route } from '#console/state/router.ts'
import { session } from '#console/state/session.ts'
import { text } from '#console/text.ts'

const t = text.explain
const everyMs = 10_000

/** The findings about one object. */
export function ExplainTab({
  target,
  object,
}: {
  readonly target: ObjectRef
  readonly object: AnyObject
}): JSX.Element {
  const { cluster } = target
  const home = session.value?.home
  const found = useLoaded(
    (signal) => findingsOf(target, object, { cluster, home, signal }),
    [objectPath(target), object.metadata.resourceVersion],
    everyMs,
  )
  return (
    <div class="content">
      <Findings found={found.value} cluster={cluster} />
    </div>
  )
}

export function ExplainPage({ cluster }: { readonly cluster: string | undefined }): JSX.Element {
  // Without a choice, the user chooses first.
  useEffect(() => {
    if (cluster === undefined) chooser.value = 'cluster'
  }, [cluster])
  return (
    <section class="page">
      <div class="toolbar">
        <h1 class="crumbs">
          {t.title}
          <button type="button" onClick={() => (chooser.value = 'cluster')}>
            {cluster ?? t.choose}
          </button>
        </h1>
      </div>
      {cluster === undefined ? (
        <Notice kind="info">{t.chooseFirst}</Notice>
      ) : (
        <OfCluster key={cluster} cluster={cluster} />
      )}
    </section>
  )
}

function OfCluster({ cluster }: { readonly cluster: string }): JSX.Element {
  const home = session.value?.home
  const found = useLoaded((signal) => findingsIn({ cluster, home, signal }), [cluster], everyMs)
  return <Findings found={found.value} cluster={cluster} />
}

interface FindingsProps {
  readonly found: { readonly value?: readonly Finding[]; readonly error?: string }
  readonly cluster: string
}

function Findings({ found: { value, error }, cluster }: FindingsProps): JSX.Element {
  const resources = useLoaded(() => resourcesOf(cluster), [cluster])
  return (
    <>
      {error === undefined ? null : <Notice kind="bad">{visibleText(error)}</Notice>}
      {value === undefined && error === undefined ? <Notice kind="info">{text.table.listing}</Notice> : null}
      <ul class="findings">
        {value?.map((finding, index) => (
          <FindingItem key={`${index} ${finding.what}`} finding={finding} resources={resources.value.value ?? []} />
        ))}
      </ul>
    </>
  )
}

function FindingItem({
  finding,
  resources,
}: {
  readonly finding: Finding
  readonly resources: readonly Resource[]
}): JSX.Element {
  const { state, what, reason, since, waitsFor, until, then = '', todo } = finding
  const left = until === undefined ? 0 : (Date.parse(until) - now.value) / 1000
  return (
    <li class={`finding ${state}`}>
      <div class="finding-head">
        <Badge tone={tones[state]}>{t.state[state]}</Badge> <SubjectLink finding={finding} resources={resources} />{' '}
        <Age since={since} />
      </div>
      <p>{visibleText(what)}</p>
      {waitsFor === undefined ? null : <p>{visibleText(t.waitsFor(waitsFor))}</p>}
      {until === undefined ? null : (
        <p class="quiet">{left > 0 ? t.endsIn(durationText(left), then) : t.ended(durationText(-left), then)}</p>
      )}
      {todo === undefined ? null : <p class="todo">{visibleText(t.todo(todo))}</p>}
      {reason === undefined ? null : <ReasonText reason={reason} />}
    </li>
  )
}

const tones = { wrong: 'bad', waits: 'wait', well: 'good', note: 'plain' } as const

function SubjectLink({
  finding: { subject },
  resources,
}: {
  readonly finding: Finding
  readonly resources: readonly Resource[]
}): JSX.Element {
  const { kind, namespace, name } = subject
  const label = visibleText(`${kind} ${namespace === undefined ? '' : `${namespace} / `}${name}`)
  const to = routeOf(subject, resources)
  return to === undefined ? <strong>{label}</strong> : <Link to={to}>{label}</Link>
}

function routeOf(
  { cluster, kind, namespace = '', name }: Finding['subject'],
  resources: readonly Resource[],
): Route | undefined {
  if (kind === 'MemberCluster' || kind === 'Member') return { page: 'members', member: name }
  const resource = resourceOfKindName(resources, kind)
  if (cluster === undefined || resource === undefined) return undefined
  return { page: 'object', object: { ...resource, cluster, namespace, name }, tab: 'explain' }
}

/** The entry of the reference for a reason, shown when a user opens it. */
function ReasonText({ reason }: { readonly reason: string }): JSX.Element {
  const body = useSignal('')
  const load = async (): Promise<void> => {
    const { reasonText } = await import('#console/lazy/reasons.ts')
    body.value = reasonText(reason) ?? t.noReason
  }
  return (
    <details onToggle={() => void load()}>
      <summary>
        <code>{visibleText(reason)}</code>: {t.whatItMeans}
      </summary>
      <p class="reason">{body.value}</p>
    </details>
  )
}
