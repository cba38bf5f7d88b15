import { useNow } from '../parts/now.ts';
import { away } from '../state/reach.ts';
import { MY_ZONE, timeText } from '../state/zone.ts';

/** Away for less than this is not said: an instance that is started anew is back by then. */
const UNSAID_MS = 1_000;

/** Who does not answer, and since when. The page goes on asking, and the banner goes with the first answer. */
export function Banner() {
  const now = useNow();
  if (away.value === null || now - away.value.since < UNSAID_MS) return null;
  const { what, since } = away.value;
  const who = what === 'instance' ? 'This instance does not answer' : 'The database is out of reach';
  return (
    <div class="banner" role="alert">
      {who}, since {timeText(since, MY_ZONE)}. What you see is from before. Trying again…
    </div>
  );
}
