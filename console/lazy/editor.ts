// The editor of YAML with completion from the schema, and the view of a difference. Loaded when a user opens YAML.
import {
  autocompletion,
  completionKeymap,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language'
import { unifiedMergeView } from '@codemirror/merge'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { placeIn } from '#console/model/yaml-text.ts'
import { schemaAt, typeText, type OpenApiDocument, type Schema } from '#console/model/schema-at.ts'
import { styleNonce } from './style-nonce.ts'

export interface Editor {
  text(): string
  setText(text: string): void
  destroy(): void
}

export interface SchemaSource {
  readonly document: OpenApiDocument
  readonly schema: Schema
}

interface EditorOptions {
  readonly parent: HTMLElement
  readonly text: string
  readonly label: string
  readonly readOnly: boolean
  /** Undefined while the schema is not known. */
  readonly schema: () => SchemaSource | undefined
  readonly save: () => void
}

const theme = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', color: 'var(--text)', backgroundColor: 'var(--surface)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--quiet)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-content': { caretColor: 'var(--text)', fontFamily: 'var(--mono)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-tooltip': { backgroundColor: 'var(--surface)', color: 'var(--text)', border: '1px solid var(--line)' },
  '.cm-panels': { backgroundColor: 'var(--surface)', color: 'var(--text)' },
})

/** Colours of the page, which are readable on dark and on light. */
const highlighting = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.comment, tags.meta], color: 'var(--quiet)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--wait)' },
])

const shared: Extension = [
  // A page with a policy of its own refuses styles without its nonce.
  EditorView.cspNonce.of(styleNonce),
  lineNumbers(),
  foldGutter(),
  drawSelection(),
  bracketMatching(),
  highlightSelectionMatches(),
  EditorView.lineWrapping,
  yaml(),
  syntaxHighlighting(highlighting),
  highlightSpecialChars(),
  theme,
]

export function createEditor({ parent, text, label, readOnly, schema, save }: EditorOptions): Editor {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        shared,
        history(),
        indentOnInput(),
        highlightActiveLine(),
        EditorState.readOnly.of(readOnly),
        EditorView.contentAttributes.of({ 'aria-label': label }),
        autocompletion({ override: [(context) => completionsAt(context, schema())] }),
        keymap.of([
          { key: 'Mod-s', preventDefault: true, run: () => (save(), true) },
          { key: 'Escape', run: (one) => (one.contentDOM.blur(), true) },
          ...completionKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...foldKeymap,
          indentWithTab,
        ]),
      ],
    }),
  })
  scrollByKeyboard(view)
  return {
    text: () => view.state.doc.toString(),
    setText: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    destroy: () => view.destroy(),
  }
}

/** Fields of the schema at the cursor, or the values of an enumeration. */
function completionsAt(context: CompletionContext, source: SchemaSource | undefined): CompletionResult | null {
  if (source === undefined) return null
  const word = context.matchBefore(/[\w./-]*/)
  if (word === null || (word.from === word.to && !context.explicit)) return null
  const { path, at } = placeIn(context.state.doc.toString(), word.from)
  const schema = schemaAt(source.document, source.schema, path)
  if (schema === undefined) return null
  const options = at === 'key' ? fieldsOf(source.document, schema) : valuesOf(schema)
  return options.length === 0 ? null : { from: word.from, options, validFor: /^[\w./-]*$/ }
}

function fieldsOf(document: OpenApiDocument, { properties = {}, required = [] }: Schema): Completion[] {
  return Object.entries(properties).map(([name, property]) => ({
    label: name,
    apply: `${name}: `,
    type: 'property',
    detail: typeText(document, property),
    boost: required.includes(name) ? 1 : 0,
    ...(property.description !== undefined && { info: property.description }),
  }))
}

function valuesOf({ enum: values = [], type }: Schema): Completion[] {
  const known = type === 'boolean' ? ['true', 'false'] : values.map(String)
  return known.map((label) => ({ label, type: 'enum' }))
}

/** Shows `after` with its differences from `before`. */
export function createDiff(parent: HTMLElement, before: string, after: string): { destroy(): void } {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: after,
      extensions: [
        shared,
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } }),
      ],
    }),
  })
  scrollByKeyboard(view)
  return { destroy: () => view.destroy() }
}

/** CodeMirror takes the part that scrolls out of the order of focus. */
function scrollByKeyboard({ scrollDOM }: EditorView): void {
  scrollDOM.tabIndex = 0
}
