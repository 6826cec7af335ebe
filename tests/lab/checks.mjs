// How the programs beside this one check: the first difference ends them with status 1, and at the end they tell how much was checked.

import { isDeepStrictEqual } from 'node:util'

let steps = 0

export function check(what, got, expected = true) {
  steps += 1
  if (!isDeepStrictEqual(got, expected)) {
    console.error(`not as expected: ${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(expected)}`)
    process.exit(1)
  }
}

export async function raises(what, kind, act) {
  try {
    await act()
  } catch (error) {
    check(`${what} (${error})`, error instanceof kind)
    return error
  }
  check(what, 'nothing was raised', kind.name)
}

export const checked = () => steps
