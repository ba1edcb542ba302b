// YAML of an object: edited with completion, checked by a dry run of the server, and applied after a look at the
// difference.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { resourcesOf } from '#console/kube/discovery.ts'
import { clusterPath, objectPath, type ObjectRef } from '#console/kube/paths.ts'
import { ApiError, messageOf, request, requestJson } from '#console/kube/request.ts'
import { schemaOfKind, type OpenApiDocument } from '#console/model/schema-at.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { withoutManagedFields, withRevisionOf } from '#console/model/yaml-text.ts'
import { Command, Notice } from '#console/parts/common.tsx'
import { text } from '#console/text.ts'
import type { Editor, SchemaSource } from '#console/lazy/editor.ts'

const t = text.yaml

type Step =
  | { readonly kind: 'edit' }
  | { readonly kind: 'busy' }
  /** The server accepts the change; `after` is the object as it would be. */
  | { readonly kind: 'checked'; readonly before: string; readonly after: string; readonly edited: string }
  | { readonly kind: 'applied' }
  /** Another change came between. */
  | { readonly kind: 'conflict'; readonly message: string; readonly edited: string; readonly latest: string }
  | { readonly kind: 'refused'; readonly message: string; readonly causes: readonly string[] }

export function YamlTab({ target }: { readonly target: ObjectRef }): JSX.Element {
  const step = useSignal<Step>({ kind: 'edit' })
  const box = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor | undefined>(undefined)
  const loaded = useSignal('')
  useEffect(() => startEditor(target, { box, editor, step, loaded }), [objectPath(target)])
  const check = (): void => void checked(target, loaded.value, editor.current).then((next) => (step.value = next))
  const { value } = step
  return (
    <div class="yaml">
      <div class="toolbar">
        <button type="button" onClick={check} disabled={value.kind === 'busy'} title={t.checkHint}>
          {t.check}
        </button>
        <button type="button" onClick={() => void reload(target, { editor, step, loaded })}>
          {t.reload}
        </button>
        <span class="count" role="status">
          {value.kind === 'applied' ? t.applied : value.kind === 'checked' ? t.checked : ''}
        </span>
      </div>
      <StepView
        step={value}
        apply={(edited) => void applied(target, edited, { editor, step, loaded })}
        back={() => (step.value = { kind: 'edit' })}
        resolve={(latest, edited) => {
          loaded.value = latest
          step.value = { kind: 'edit' }
          editor.current?.setText(edited)
        }}
      />
      <div class={value.kind === 'checked' || value.kind === 'conflict' ? 'editor hidden' : 'editor'} ref={box} />
      <Command>{`kcp connect ${target.cluster} -- kubectl ${target.namespace === '' ? '' : `-n ${target.namespace} `}get ${target.resource} ${target.name} -o yaml`}</Command>
    </div>
  )
}

interface Refs {
  readonly editor: { current: Editor | undefined }
  readonly step: { value: Step }
  /** The text as the server had it. */
  readonly loaded: { value: string }
}

function startEditor(
  target: ObjectRef,
  refs: Refs & { readonly box: { readonly current: HTMLElement | null } },
): () => void {
  const life = new AbortController()
  let schema: SchemaSource | undefined
  const start = async (): Promise<void> => {
    const [{ createEditor }, yaml] = await Promise.all([
      import('#console/lazy/editor.ts'),
      readYaml(target, life.signal),
    ])
    const parent = refs.box.current
    if (life.signal.aborted || parent === null) return
    refs.loaded.value = yaml
    const save = (): void =>
      void checked(target, refs.loaded.value, refs.editor.current).then((next) => (refs.step.value = next))
    const label = `YAML ${target.name}`
    refs.editor.current = createEditor({ parent, text: yaml, label, readOnly: false, schema: () => schema, save })
    // Completion may come late; without a schema the editor works as well.
    schema = await schemaFor(target, life.signal).catch(() => undefined)
  }
  start().catch((error: unknown) => {
    if (!life.signal.aborted) refs.step.value = { kind: 'refused', message: messageOf(error), causes: [] }
  })
  return () => {
    life.abort()
    refs.editor.current?.destroy()
    refs.editor.current = undefined
  }
}

async function readYaml(target: ObjectRef, signal?: AbortSignal): Promise<string> {
  const response = await request(objectPath(target), { accept: 'application/yaml', ...(signal && { signal }) })
  return withoutManagedFields(await response.text())
}

async function schemaFor(target: ObjectRef, signal: AbortSignal): Promise<SchemaSource | undefined> {
  const { group, version, cluster } = target
  const path = `${clusterPath(cluster)}/openapi/v3/${group === '' ? 'api' : `apis/${group}`}/${version}`
  const [document, resources] = await Promise.all([
    requestJson<OpenApiDocument>(path, { signal }),
    resourcesOf(cluster),
  ])
  const kind = resources.find((one) => one.group === group && one.resource === target.resource)?.kind ?? ''
  const schema = schemaOfKind(document, { group, version, kind })
  return schema === undefined ? undefined : { document, schema }
}

async function put(target: ObjectRef, yaml: string, isDryRun: boolean): Promise<string> {
  const response = await request(objectPath(target), {
    method: 'PUT',
    accept: 'application/yaml',
    contentType: 'application/yaml',
    body: yaml,
    query: { fieldManager: 'kcp-console', fieldValidation: 'Strict', ...(isDryRun && { dryRun: 'All' }) },
  })
  return withoutManagedFields(await response.text())
}

/** Asks the server what the change would make of the object. */
async function checked(target: ObjectRef, before: string, editor: Editor | undefined): Promise<Step> {
  const edited = editor?.text() ?? ''
  try {
    const after = await put(target, edited, true)
    // The server orders fields in its own way, so the object as it was is written by it as well.
    const unchanged = await put(target, before, true).catch(() => before)
    return { kind: 'checked', before: unchanged, after, edited }
  } catch (error) {
    return failure(target, edited, error)
  }
}

async function applied(target: ObjectRef, edited: string, { editor, step, loaded }: Refs): Promise<void> {
  step.value = { kind: 'busy' }
  try {
    loaded.value = await put(target, edited, false)
    editor.current?.setText(loaded.value)
    step.value = { kind: 'applied' }
  } catch (error) {
    step.value = await failure(target, edited, error)
  }
}

async function failure(target: ObjectRef, edited: string, error: unknown): Promise<Step> {
  const message = messageOf(error)
  if (error instanceof ApiError && error.status === 409)
    return { kind: 'conflict', message, edited, latest: await readYaml(target).catch(() => '') }
  const causes = error instanceof ApiError ? error.causes : []
  return { kind: 'refused', message, causes: causes.map(({ field = '', message: text = '' }) => `${field}: ${text}`) }
}

async function reload(target: ObjectRef, { editor, step, loaded }: Refs): Promise<void> {
  try {
    loaded.value = await readYaml(target)
    editor.current?.setText(loaded.value)
    step.value = { kind: 'edit' }
  } catch (error) {
    step.value = { kind: 'refused', message: messageOf(error), causes: [] }
  }
}

interface StepViewProps {
  readonly step: Step
  readonly apply: (edited: string) => void
  readonly back: () => void
  /** Goes on editing `edited`, as a change of `latest`. */
  readonly resolve: (latest: string, edited: string) => void
}

function StepView({ step, apply, back, resolve }: StepViewProps): JSX.Element | null {
  if (step.kind === 'refused')
    return (
      <Notice kind="bad">
        {visibleText(step.message)}
        {step.causes.map((cause) => (
          <span key={cause} class="cause">
            {visibleText(cause)}
          </span>
        ))}
      </Notice>
    )
  if (step.kind === 'conflict')
    return (
      <>
        <Notice kind="bad">{`${t.conflict} ${visibleText(step.message)}`}</Notice>
        <DiffView before={step.edited} after={step.latest} label={t.conflictDiff} />
        <div class="actions">
          <button type="button" onClick={() => resolve(step.latest, step.latest)}>
            {t.takeLatest}
          </button>
          <button type="button" onClick={() => resolve(step.latest, withRevisionOf(step.edited, step.latest))}>
            {t.keepMine}
          </button>
        </div>
      </>
    )
  if (step.kind !== 'checked') return null
  return (
    <>
      {step.before === step.after ? <Notice kind="info">{t.noChange}</Notice> : null}
      <DiffView before={step.before} after={step.after} label={t.diff} />
      <div class="actions">
        <button type="button" class="primary" onClick={() => apply(step.edited)}>
          {t.apply}
        </button>
        <button type="button" onClick={back}>
          {t.back}
        </button>
      </div>
    </>
  )
}

function DiffView({
  before,
  after,
  label,
}: {
  readonly before: string
  readonly after: string
  readonly label: string
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    let diff: { destroy(): void } | undefined
    let isGone = false
    void import('#console/lazy/editor.ts').then(({ createDiff }) => {
      if (!isGone && box.current !== null) diff = createDiff(box.current, before, after)
    })
    return () => {
      isGone = true
      diff?.destroy()
    }
  }, [before, after])
  return <div class="diff" ref={box} role="group" aria-label={label} tabIndex={0} />
}
