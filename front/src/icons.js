// Signs drawn as paths, so that they look alike everywhere; they carry no meaning that words beside them don't.

const icon = (d, fill) => <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" fill={fill ? "currentColor" : "none"} stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"><path d={d} /></svg>;

export const locked = () => icon("M4.5 7V5a3.5 3.5 0 0 1 7 0v2M3.5 7h9v6.5h-9z", true);
export const unlocked = () => icon("M4.5 7V4.5a3.2 3.2 0 0 1 6.2-1M3.5 7h9v6.5h-9z");
export const star = (full) => icon("M8 2l1.8 3.8 4.2.5-3.1 2.8.8 4.1L8 11.2l-3.7 2 .8-4.1L2 6.3l4.2-.5z", full);
export const undoing = () => icon("M6 3 3 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H7");
export const redoing = () => icon("M10 3l3 3-3 3M13 6H6.5a3.5 3.5 0 0 0 0 7H9");
export const left = () => icon("M10 3 5 8l5 5");
export const right = () => icon("M6 3l5 5-5 5");
export const pin = (full) => icon("M5.5 2h5l-.8 4 2.3 2.5H4L6.3 6zM8 8.5V14", full);
export const close = () => icon("M4 4l8 8M12 4l-8 8");
export const share = () => icon("M8 10V2M5 5l3-3 3 3M3 9v4.5h10V9");
export const halfMoon = () => icon("M13 9.5A5.5 5.5 0 1 1 6.5 3a4.5 4.5 0 0 0 6.5 6.5z");
export const help = () => icon("M6 6a2 2 0 1 1 3 1.7c-.7.4-1 .8-1 1.6M8 12v.1M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z");
