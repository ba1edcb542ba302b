// Lets other work of the process run: the calls on files block.

const sliceMs = 10

export class TimeSlices {
  #since = performance.now()

  /** True once the slice is used up. */
  isOver(): boolean {
    return performance.now() - this.#since > sliceMs
  }

  async rest(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#since = performance.now()
  }
}
