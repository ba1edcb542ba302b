// The move board: every move, state by state, with its gate, its deadline and what blocks it.
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import { arrivingStates, workloadKinds } from '#crds/index.ts'
import type { AnyObject } from '#console/kube/objects.ts'
import { moveBoard, type CopyRow, type MoveCard } from '#console/model/moves.ts'
import { durationText } from '#console/model/age.ts'
import { Age, Badge, Link, Notice, Plain, StateNotice } from '#console/parts/common.tsx'
import { now } from '#console/state/clock.ts'
import { placedWorkloads, usePlacedWorkloads } from '#console/state/placed-workloads.ts'
import type { Route } from '#console/state/router.ts'
import { text } from '#console/text.ts'

const t = text.moves

export function MovesPage(): JSX.Element {
  usePlacedWorkloads()
  const board = useComputed(() => moveBoard(placedWorkloads.value.objects))
  const { state } = placedWorkloads.value
  const { moving, done, placed } = board.value
  return (
    <section class="page">
      <div class="toolbar">
        <h1>{t.title}</h1>
        <span class="count" role="status">
          {state.kind === 'listing' ? text.table.listing : t.summary(moving.length, placed)}
        </span>
      </div>
      <StateNotice state={state} />
      {moving.length === 0 && state.kind === 'live' ? <Notice kind="good">{t.nothing}</Notice> : null}
      <div class="cards">
        {moving.map((card) => (
          <MoveCardView key={card.key} card={card} />
        ))}
      </div>
      <h2>{t.done}</h2>
      {done.length === 0 ? <p class="quiet">{t.noneDone}</p> : null}
      <ul class="past">
        {done.map((card) => (
          <li key={card.key}>
            <Age since={card.newest?.time} /> <WorkloadLink object={card.object} cluster={card.cluster} />{' '}
            {fromTo(card)} <Badge tone="plain">{card.newest?.cause ?? ''}</Badge>{' '}
            <span class="quiet">
              <Plain>{card.newest?.message ?? ''}</Plain>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function fromTo({ newest }: MoveCard): string {
  return `${newest?.from.join(', ') || t.nowhere} → ${newest?.to.join(', ') || t.nowhere}`
}

function MoveCardView({ card }: { readonly card: MoveCard }): JSX.Element {
  const { object, cluster, copies, newest, held } = card
  return (
    <article class="card">
      <header>
        <WorkloadLink object={object} cluster={cluster} />
        {newest === undefined ? null : (
          <span>
            {' '}
            {fromTo(card)} <Badge tone="plain">{newest.cause}</Badge> <Age since={newest.time} />
          </span>
        )}
      </header>
      {held === undefined ? null : (
        <Notice kind="bad">
          <Plain>{held}</Plain>
        </Notice>
      )}
      {copies.map((copy) => (
        <CopyView key={copy.member} copy={copy} />
      ))}
    </article>
  )
}

/** The order of states in which a copy comes, and in which it goes. */
const arrival = ['Assumed', ...arrivingStates, 'Serving'] as const
const departure = ['Serving', 'Draining', 'Forwarding', 'Terminating'] as const

export function CopyView({ copy }: { readonly copy: CopyRow }): JSX.Element {
  const { member, state, since, replicas, waitsFor, gate, waitsSince, blocker } = copy
  const leaves = state !== 'Serving' && departure.some((one) => one === state)
  const steps: readonly string[] = leaves ? departure : arrival
  return (
    <div class="copy">
      <div class="copy-head">
        <strong>{member}</strong>
        <Badge>{state}</Badge>
        <Age since={since} />
        {replicas === undefined ? null : <span class="quiet">{t.replicas(replicas)}</span>}
      </div>
      {steps.includes(state) ? <Steps steps={steps} at={steps.indexOf(state)} /> : null}
      {waitsFor === undefined ? null : (
        <p class="wait">
          {t.waitsFor(waitsFor)} <code>{gate}</code> (<Age since={waitsSince} />) <Deadline copy={copy} />
        </p>
      )}
      {blocker === undefined ? null : (
        <p class="blocker">
          <Plain>{blocker}</Plain>
        </p>
      )}
    </div>
  )
}

function Steps({ steps, at }: { readonly steps: readonly string[]; readonly at: number }): JSX.Element {
  return (
    <ol class="steps">
      {steps.map((step, index) => (
        <li
          key={step}
          class={index < at ? 'past' : index === at ? 'now' : ''}
          aria-current={index === at ? 'step' : undefined}
        >
          {step}
        </li>
      ))}
    </ol>
  )
}

function Deadline({ copy: { until, then = '' } }: { readonly copy: CopyRow }): JSX.Element {
  if (until === undefined) return <span class="quiet">{t.noDeadline}</span>
  const seconds = (Date.parse(until) - now.value) / 1000
  const left = seconds > 0 ? t.left(durationText(seconds)) : t.over(durationText(-seconds))
  return (
    <span title={until}>
      {left}, {t.then} <Badge tone="plain">{then}</Badge>
    </span>
  )
}

export function WorkloadLink({
  object,
  cluster,
}: {
  readonly object: AnyObject
  readonly cluster: string
}): JSX.Element {
  const { namespace = '', name } = object.metadata
  const label = `${cluster} / ${namespace} / ${(object.kind ?? '').toLowerCase()} ${name}`
  const to = workloadRoute(object, cluster)
  return to === undefined ? <span>{label}</span> : <Link to={to}>{label}</Link>
}

function workloadRoute({ kind, metadata: { namespace = '', name } }: AnyObject, cluster: string): Route | undefined {
  const gvr = workloadKinds.find((row) => row.kind === kind)?.gvr
  return gvr === undefined ? undefined : { page: 'object', object: { ...gvr, cluster, namespace, name }, tab: 'where' }
}
