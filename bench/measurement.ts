// The interface of one measurement.

/** Numbers by name and unit. */
export type Numbers = Readonly<Record<string, number>>

export interface Measurement {
  /** For `--only`. */
  readonly name: string
  /** For `--help`. */
  readonly describes: string
  run(context: { readonly signal: AbortSignal; readonly say: (line: string) => void }): Promise<Numbers>
}
