// Small parts that several pages use.
import { useSignal } from '@preact/signals'
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { FollowState } from '#console/kube/follow.ts'
import type { Condition } from '#console/kube/objects.ts'
import { ageText } from '#console/model/age.ts'
import { conditionTone, toneOf, type Tone } from '#console/model/tone.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { now } from '#console/state/clock.ts'
import { fragmentOf, type Route } from '#console/state/router.ts'
import { text } from '#console/text.ts'

export function Link({ to, children }: { readonly to: Route; readonly children: ComponentChildren }): JSX.Element {
  return <a href={fragmentOf(to)}>{children}</a>
}

export function Badge({ children, tone }: { readonly children: string; readonly tone?: Tone }): JSX.Element {
  return <span class={`badge ${tone ?? toneOf(children)}`}>{visibleText(children)}</span>
}

/** Text of a cluster, with the controls in it visible. */
export function Plain({ children }: { readonly children: string }): JSX.Element {
  return <>{visibleText(children)}</>
}

/** The time since, growing; the time itself as a hint. */
export function Age({ since }: { readonly since: string | number | undefined }): JSX.Element {
  const ms = typeof since === 'number' ? since : Date.parse(since ?? '')
  if (Number.isNaN(ms)) return <span />
  return <time title={new Date(ms).toISOString()}>{ageText(ms, now.value)}</time>
}

export function Notice({
  kind,
  children,
}: {
  readonly kind: 'info' | 'bad' | 'wait' | 'good'
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <p class={`notice ${kind}`} role={kind === 'bad' ? 'alert' : 'status'}>
      {children}
    </p>
  )
}

/** Why a list is not shown or not live; nothing if it is. */
export function StateNotice({ state }: { readonly state: FollowState }): JSX.Element | null {
  if (state.kind === 'refused') return <Notice kind="bad">{visibleText(state.message)}</Notice>
  if (state.kind !== 'retrying') return null
  return <Notice kind="wait">{`${text.table.retrying}: ${visibleText(state.message)}`}</Notice>
}

export function Conditions({ conditions }: { readonly conditions: readonly Condition[] }): JSX.Element {
  if (conditions.length === 0) return <p class="quiet">{text.object.noConditions}</p>
  return (
    <Plot
      head={[text.object.condition, text.object.status, text.object.reason, text.object.message, text.object.since]}
    >
      {conditions.map((condition) => (
        <tr key={condition.type}>
          <td>
            <Plain>{condition.type}</Plain>
          </td>
          <td>
            <Badge tone={conditionTone(condition)}>{condition.status}</Badge>
          </td>
          <td>
            <Plain>{condition.reason ?? ''}</Plain>
          </td>
          <td class="wrap">
            <Plain>{condition.message ?? ''}</Plain>
          </td>
          <td>
            <Age since={condition.lastTransitionTime ?? condition.lastUpdateTime} />
          </td>
        </tr>
      ))}
    </Plot>
  )
}

/** A short table that is drawn whole. */
export function Plot({
  head,
  children,
}: {
  readonly head: readonly string[]
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={head.join(', ')}>
      <table class="plain">
        <thead>
          <tr>
            {head.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

/** A share of a whole, as a bar with its numbers. */
export function Meter({
  label,
  used,
  of,
}: {
  readonly label: string
  readonly used: number
  readonly of: number
}): JSX.Element {
  const percent = of > 0 ? Math.min(100, Math.round((used / of) * 100)) : 0
  const tone = percent > 90 ? 'bad' : percent > 75 ? 'wait' : 'good'
  return (
    <div class="meter" role="meter" aria-label={label} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
      <span class="meter-text">{`${label} ${percent} %`}</span>
      <span class={`meter-bar ${tone}`} style={{ width: `${percent}%` }} />
    </div>
  )
}

/** A command to copy. */
export function Command({ children }: { readonly children: string }): JSX.Element {
  const copied = useSignal(false)
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(children)
    copied.value = true
  }
  return (
    <div class="command">
      <code>{visibleText(children)}</code>
      <button type="button" onClick={() => void copy().catch(() => undefined)}>
        {copied.value ? text.common.copied : text.common.copy}
      </button>
    </div>
  )
}

/** A modal dialog; the browser keeps the focus in it, and Escape closes it. */
export function Dialog({
  title,
  close,
  children,
}: {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal()
  }, [])
  return (
    <dialog ref={dialog} aria-label={title} onClose={close}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <button type="button" onClick={close} aria-label={text.common.close}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  )
}

/** Values by name, one below the other. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
