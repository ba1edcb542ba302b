// fieldValidation: fields that are unknown, duplicate, or in another letter case.
import { patch, post, put, type Row, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const sets = '/apis/apps/v1/namespaces/{ns}/replicasets'
const custom = widgets('fields')
const modes = ['', '?fieldValidation=Ignore', '?fieldValidation=Warn', '?fieldValidation=Strict']

/** A deployment with `extra` in its container, its spec and at the top; as text, because members may be duplicated. */
const body = (name: string, { container = '', spec = '', top = '' }): string =>
  `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"${name}"},"spec":{"replicas":0,${spec}"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"${container}}]}}}${top}}`

const wrong: [what: string, parts: { container?: string; spec?: string; top?: string }][] = [
  ['nothing wrong', {}],
  ['unknown in a container', { container: ',"nonsense":1' }],
  ['unknown in spec', { spec: '"nonsense":{"a":1},' }],
  ['unknown at the top', { top: ',"nonsense":1' }],
  ['several unknown', { container: ',"one":1,"two":2', spec: '"three":3,', top: ',"four":4' }],
  ['twice in spec', { spec: '"replicas":0,' }],
  ['twice at the top', { top: ',"kind":"ReplicaSet"' }],
  ['twice in a map', { top: ',"metadata":{"name":"x","labels":{"a":"1","a":"2"}}' }],
  ['another case', { spec: '"Replicas":5,' }],
  ['another case in a container', { container: ',"imagePullpolicy":"Always"' }],
  ['a field in both cases', { spec: '"REPLICAS":5,"minReadySeconds":1,"MinReadySeconds":2,' }],
  ['unknown and twice', { spec: '"nonsense":1,"replicas":0,' }],
  ['unknown in status', { top: ',"status":{"nonsense":1}' }],
]

const yamlBody = (name: string, extra: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n${extra}`
const maps = '/api/v1/namespaces/{ns}/configmaps'

const yamls: [what: string, extra: string][] = [
  ['unknown', 'nonsense: 1\n'],
  ['twice', 'data: {a: "1"}\ndata: {b: "2"}\n'],
  ['twice in a map', 'data:\n  a: "1"\n  a: "2"\n'],
  ['another case', 'Data: {a: "1"}\n'],
  ['unknown and twice', 'nonsense: 1\ndata: {a: "1"}\ndata: {a: "1"}\n'],
]

const widget = (extra: string): string =>
  `{"apiVersion":"${custom.apiVersion}","kind":"Widget","metadata":{"name":"w"}${extra}}`
const widgetWrong: [what: string, extra: string][] = [
  ['unknown in spec', ',"spec":{"nonsense":1}'],
  ['unknown at the top', ',"nonsense":1'],
  ['unknown in metadata', ',"metadata":{"name":"w","nonsense":1}'],
  ['twice in spec', ',"spec":{"color":"a","color":"b"}'],
  ['another case', ',"spec":{"Color":"a"}'],
  ['unknown and twice', ',"spec":{"nonsense":1,"color":"a","color":"b"}'],
  ['unknown in status', ',"status":{"nonsense":1}'],
]

const edits: [what: string, merge: string][] = [
  ['unknown', '{"spec":{"nonsense":1}}'],
  ['twice', '{"spec":{"minReadySeconds":1,"minReadySeconds":1}}'],
  ['unknown and twice', '{"spec":{"nonsense":1,"minReadySeconds":1,"minReadySeconds":1}}'],
  ['another case', '{"spec":{"MinReadySeconds":2}}'],
]

export const fieldValidation: Topic = {
  name: 'fields',
  rows: [
    ...modes.flatMap((mode) =>
      wrong.map(([what, parts]): Row => post(`${sets}${mode || '?'}&dryRun=All`, body('d', parts), { what })),
    ),
    post(`${sets}?fieldValidation=strict`, body('d', {})),
    post(`${sets}?fieldValidation=Nonsense`, body('d', {})),
    post(`${sets}?fieldValidation=`, body('d', {}), { what: 'created' }),
    ...modes.flatMap((mode) =>
      yamls.map(([what, extra]): Row =>
        post(`${maps}${mode || '?'}&dryRun=All`, yamlBody('m', extra), {
          what: `YAML, ${what}`,
          type: 'application/yaml',
        }),
      ),
    ),
    ...modes.flatMap((mode) => [
      put(`${sets}/d${mode || '?'}&dryRun=All`, body('d', { spec: '"nonsense":1,"replicas":0,' }), {
        what: 'unknown and twice',
      }),
      ...edits.flatMap(([what, document]): Row[] => [
        patch('merge', `${sets}/d${mode || '?'}&dryRun=All`, document, { what }),
        patch('strategic', `${sets}/d${mode || '?'}&dryRun=All`, document, { what }),
      ]),
      patch('json', `${sets}/d${mode || '?'}&dryRun=All`, '[{"op":"add","path":"/spec/nonsense","value":1}]', {
        what: 'unknown',
      }),
      patch(
        'json',
        `${sets}/d${mode || '?'}&dryRun=All`,
        '[{"op":"add","path":"/spec/minReadySeconds","value":1,"nonsense":1}]',
        { what: 'unknown in the operation' },
      ),
      patch(
        'json',
        `${sets}/d${mode || '?'}&dryRun=All`,
        '[{"op":"add","path":"/spec/minReadySeconds","value":1,"value":1}]',
        { what: 'twice in the operation' },
      ),
    ]),
    ...custom.rows,
    ...modes.flatMap((mode) =>
      widgetWrong.map(([what, extra]): Row => post(`${custom.path}${mode || '?'}&dryRun=All`, widget(extra), { what })),
    ),
    post(custom.path, widget('')),
    ...modes.flatMap((mode) => [
      patch('merge', `${custom.path}/w${mode || '?'}&dryRun=All`, '{"spec":{"nonsense":1,"color":"a","color":"b"}}', {
        what: 'unknown and twice',
      }),
      patch(
        'json',
        `${custom.path}/w${mode || '?'}&dryRun=All`,
        '[{"op":"add","path":"/spec","value":{"nonsense":1}}]',
        { what: 'unknown' },
      ),
    ]),
  ],
}
